#include "app/json_reader.hpp"

#include <algorithm>
#include <cmath>

#include "base/nearest.hpp"
#include "base/units.hpp"

namespace shoal::app {

namespace {

std::string text_of_number(double number) {
  auto text = std::to_string(number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

error json_reader::wrong(const std::string& place, const std::string& expected,
                         const json& found) const {
  // Text from outside may hold bytes that are no UTF-8.
  auto text = found.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 40) + "...";
  return {errc::config, place + ": expected " + expected + ", found " + text};
}

result<void> json_reader::expect(const std::vector<std::string>& required,
                                 const std::vector<std::string>& optional) const {
  if (!value_.is_object()) return wrong(path_, "an object", value_);
  auto known = required;
  known.insert(known.end(), optional.begin(), optional.end());
  for (auto& [key, unused] : value_.items())
    if (std::ranges::find(known, key) == known.end())
      return {errc::config,
              place(key) + ": unknown; did you mean \"" + nearest_name(key, known) + "\"?"};
  for (auto& key : required)
    if (!value_.contains(key)) return {errc::config, place(key) + ": missing"};
  return {};
}

result<std::string> json_reader::text(const char* key) const {
  auto& v = value_[key];
  if (!v.is_string()) return wrong(place(key), "a string", v);
  return v.get<std::string>();
}

result<bool> json_reader::flag(const char* key) const {
  auto& v = value_[key];
  if (!v.is_boolean()) return wrong(place(key), "true or false", v);
  return v.get<bool>();
}

result<std::uint64_t> json_reader::whole(const char* key, std::uint64_t max) const {
  auto& v = value_[key];
  if (!v.is_number_unsigned() || v.get<std::uint64_t>() > max)
    return wrong(place(key), "a whole number from 0 to " + std::to_string(max), v);
  return v.get<std::uint64_t>();
}

result<double> json_reader::real(const char* key, double min, double max) const {
  auto& v = value_[key];
  auto number = v.is_number() ? v.get<double>() : NAN;
  if (!(number >= min && number <= max))
    return wrong(place(key), "a number from " + text_of_number(min) + " to " + text_of_number(max),
                 v);
  return number;
}

result<const json_reader::json*> json_reader::list(const char* key) const {
  auto& v = value_[key];
  if (!v.is_array()) return wrong(place(key), "a list", v);
  return &v;
}

result<json_reader> json_reader::object(const char* key) const {
  auto& v = value_[key];
  if (!v.is_object()) return wrong(place(key), "an object", v);
  return json_reader(v, place(key));
}

result<std::vector<std::uint32_t>> json_reader::wholes(const char* key, std::uint32_t max) const {
  TRY(auto* all, list(key));
  std::vector<std::uint32_t> numbers;
  for (auto& v : *all) {
    if (!v.is_number_unsigned() || v.get<std::uint64_t>() > max)
      return wrong(place(key) + "[" + std::to_string(numbers.size()) + "]",
                   "a whole number from 0 to " + std::to_string(max), v);
    numbers.push_back(v.get<std::uint32_t>());
  }
  return numbers;
}

result<std::chrono::nanoseconds> json_reader::duration(const char* key) const {
  auto& v = value_[key];
  if (v.is_string())
    if (auto parsed = parse_duration(v.get<std::string>())) return *parsed;
  return wrong(place(key), "a duration with its unit, as in \"10ms\"", v);
}

result<std::uint64_t> json_reader::bytes(const char* key) const {
  auto& v = value_[key];
  if (v.is_number_unsigned()) return v.get<std::uint64_t>();
  if (v.is_string())
    if (auto parsed = parse_bytes(v.get<std::string>())) return parsed->value;
  return wrong(place(key), "a size, as in \"2MiB\" or 4096", v);
}

result<double> json_reader::rate(const char* key) const {
  auto& v = value_[key];
  if (v.is_string())
    if (auto parsed = parse_rate(v.get<std::string>())) return parsed->bytes_per_s;
  return wrong(place(key), "a rate, as in \"100Mbit/s\", \"10MB/s\" or \"unlimited\"", v);
}

}  // namespace shoal::app
