#include "storage/strict_json.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <vector>

namespace shoal::storage {

namespace {

error damaged(std::string text) { return {errc::damaged, std::move(text)}; }

/// Finds the member and asks `is` about it.
template <class Is>
result<const nlohmann::json*> find(const nlohmann::json& object, const char* key, const char* kind,
                                   Is is) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end()) return damaged("\"" + std::string(key) + "\" is missing");
  if (!is(*found)) return damaged("\"" + std::string(key) + "\" is not " + kind);
  return &*found;
}

}  // namespace

result<nlohmann::json> parse_strictly(std::string_view text, int depth_max) {
  using event = nlohmann::json::parse_event_t;
  // The library takes a zero byte for the end, whatever comes after it.
  if (text.find('\0') != std::string_view::npos) return damaged("has a zero byte in its JSON");
  std::vector<std::set<std::string>> keys;  // of the open objects
  std::string twice;
  bool too_deep = false;
  auto watch = [&](int depth, event what, nlohmann::json& value) {
    if (what == event::object_start || what == event::array_start) {
      too_deep |= depth >= depth_max;
      if (what == event::object_start) keys.emplace_back();
    } else if (what == event::key) {
      auto& key = value.get_ref<const std::string&>();
      if (!keys.back().insert(key).second && twice.empty()) twice = key;
    } else if (what == event::object_end) {
      keys.pop_back();
    }
    return !too_deep;  // what is dropped takes no memory
  };
  auto parsed = nlohmann::json::parse(text, watch, /*allow_exceptions=*/false);
  if (too_deep) return damaged("nests deeper than " + std::to_string(depth_max));
  if (parsed.is_discarded()) return damaged("is not JSON");
  if (!twice.empty()) return damaged("has the key \"" + twice + "\" twice");
  return parsed;
}

result<void> check_keys(const nlohmann::json& object,
                        std::initializer_list<std::string_view> keys) {
  if (!object.is_object()) return damaged("is not an object");
  for (auto& [key, value] : object.items())
    if (std::ranges::find(keys, std::string_view(key)) == keys.end())
      return damaged("has the unknown key \"" + key + "\"");
  for (auto key : keys)
    if (!object.contains(std::string(key)))
      return damaged("\"" + std::string(key) + "\" is missing");
  return {};
}

result<std::uint64_t> number_of(const nlohmann::json& object, const char* key) {
  TRY(const auto* found, find(object, key, "a whole number of at least 0",
                              [](auto& x) { return x.is_number_unsigned(); }));
  return found->template get<std::uint64_t>();
}

result<std::string> string_of(const nlohmann::json& object, const char* key) {
  TRY(const auto* found, find(object, key, "text", [](auto& x) { return x.is_string(); }));
  return found->template get<std::string>();
}

result<bool> truth_of(const nlohmann::json& object, const char* key) {
  TRY(const auto* found,
      find(object, key, "true or false", [](auto& x) { return x.is_boolean(); }));
  return found->template get<bool>();
}

result<nlohmann::json> list_of(const nlohmann::json& object, const char* key,
                               std::size_t count_max) {
  TRY(const auto* found, find(object, key, "a list", [](auto& x) { return x.is_array(); }));
  if (found->size() > count_max)
    return damaged("\"" + std::string(key) + "\" lists " + std::to_string(found->size()) +
                   ", at most " + std::to_string(count_max) + " can be right");
  return *found;
}

std::string hex_of(std::uint64_t bits) {
  std::string digits(16, '0');
  for (std::size_t i = digits.size(); i-- > 0; bits >>= 4)
    digits[i] = "0123456789abcdef"[bits & 15];
  return digits;
}

result<std::uint64_t> bits_of_hex(std::string_view digits) {
  std::uint64_t bits = 0;
  const auto end = digits.data() + digits.size();
  const auto [stop, bad] = std::from_chars(digits.data(), end, bits, 16);
  if (digits.size() != 16 || bad != std::errc() || stop != end || hex_of(bits) != digits)
    return damaged("\"" + std::string(digits.substr(0, 32)) +
                   "\" is not 16 lower-case hexadecimal digits");
  return bits;
}

result<std::uint64_t> bits_of(const nlohmann::json& object, const char* key) {
  TRY(auto digits, string_of(object, key));
  auto bits = bits_of_hex(digits);
  if (!bits) return in(key, std::move(bits).error());
  return bits;
}

}  // namespace shoal::storage
