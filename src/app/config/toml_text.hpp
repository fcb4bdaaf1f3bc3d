#pragma once
// Reads TOML text into flat entries. The only file that knows the TOML library is toml_text.cpp.

#include <string>
#include <string_view>
#include <vector>

#include "app/config/value.hpp"
#include "base/result.hpp"

namespace shoal::app {

/// All keys of `text`, with an entry for each table before those of its contents. `source` names
/// the text in places. `errc::config` with file:line:column for what is not TOML.
result<std::vector<entry>> read_toml(std::string_view text, const std::string& source);

/// What `text` means as the right side of "key = "; a string when it is not a TOML value, so that
/// command lines need no second pair of quotes.
value read_value(std::string_view text, const std::string& source);

/// `name` as one part of a dotted key, in quotes where TOML needs them.
std::string key_part(const std::string& name);

}  // namespace shoal::app
