#pragma once
// Files that a command is given by name.

#include <cstddef>
#include <string>

#include "base/result.hpp"

namespace shoal::app {

/// The first `bytes_max` + 1 bytes of a file: one too many is enough for its parser to refuse it.
/// `errc::io` when it cannot be opened: "`path`: cannot be read; `hint`".
result<std::string> read_text(const std::string& path, std::size_t bytes_max,
                              const std::string& hint);

}  // namespace shoal::app
