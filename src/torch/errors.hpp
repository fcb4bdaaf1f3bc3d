#pragma once
// Where the exceptions of libraries, and of code that trainers bring along, become errors.

#include <exception>

#include "base/result.hpp"

namespace shoal::engine {

/// `errc::no_memory` when torch's allocator or `new` found none, `errc::data` for data_error, else
/// `errc::internal`. The text is the exception's, without a backtrace.
error error_of(const std::exception& e);

}  // namespace shoal::engine
