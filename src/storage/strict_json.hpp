#pragma once
// JSON from a disk: what the library would let pass is refused here. A key that comes twice (the
// last would win, and two readers could see two files), nesting without end, words after the end.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/result.hpp"

namespace shoal::storage {

/// Parses all of `text`. `errc::damaged` when it is no JSON, a key of an object comes twice, or
/// objects and lists nest deeper than `depth_max`.
result<nlohmann::json> parse_strictly(std::string_view text, int depth_max);

/// That `object` is an object with exactly these keys. `errc::damaged`.
result<void> check_keys(const nlohmann::json& object, std::initializer_list<std::string_view> keys);

/// The member `key`, which must be of the kind asked for. `errc::damaged`.
result<std::uint64_t> number_of(const nlohmann::json& object, const char* key);
result<std::string> string_of(const nlohmann::json& object, const char* key);
result<bool> truth_of(const nlohmann::json& object, const char* key);
result<nlohmann::json> list_of(const nlohmann::json& object, const char* key,
                               std::size_t count_max);

/// 64 bits as 16 lower-case hexadecimal digits: JSON numbers lose bits above 2^53 elsewhere.
std::string hex_of(std::uint64_t bits);
/// The bits of exactly 16 such digits. `errc::damaged`.
result<std::uint64_t> bits_of_hex(std::string_view digits);
/// The member `key` as such digits. `errc::damaged`.
result<std::uint64_t> bits_of(const nlohmann::json& object, const char* key);

}  // namespace shoal::storage
