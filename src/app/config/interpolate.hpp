#pragma once
// ${VAR} in the strings of a job file.

#include <functional>
#include <optional>
#include <string>

#include "base/result.hpp"

namespace shoal::app {

/// The value of an environment variable, or nothing.
using environment = std::function<std::optional<std::string>(const std::string& name)>;

/// That of this process.
environment process_environment();

/// `text` with each ${NAME} replaced; $${ stands for ${ itself. `errc::config` when a variable is
/// not set or empty, or a brace is not closed: a path must not lose a part in silence.
result<std::string> interpolate(const std::string& text, const environment& variables);

}  // namespace shoal::app
