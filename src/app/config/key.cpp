#include "app/config/key.hpp"

#include <array>
#include <charconv>

namespace shoal::app {

error mismatch(const std::string& expected, const value& got) {
  return {errc::config, "expected " + expected + ", got " + text_of(got)};
}

result<std::uint64_t> read_integer(const value& what, std::uint64_t low, std::uint64_t high) {
  auto* found = std::get_if<std::int64_t>(&what);
  if (found == nullptr || *found < 0 || static_cast<std::uint64_t>(*found) < low ||
      static_cast<std::uint64_t>(*found) > high)
    return mismatch("an integer from " + std::to_string(low) + " to " + std::to_string(high), what);
  return static_cast<std::uint64_t>(*found);
}

result<double> read_number(const value& what, double low, double high, bool below) {
  auto* real = std::get_if<double>(&what);
  auto* whole = std::get_if<std::int64_t>(&what);
  auto found = real != nullptr ? *real : whole != nullptr ? static_cast<double>(*whole) : -1.0;
  bool inside =
    (real != nullptr || whole != nullptr) && found >= low && (below ? found < high : found <= high);
  if (!inside)
    return mismatch("a number from " + text_of_double(low) + (below ? " to below " : " to ") +
                      text_of_double(high),
                    what);
  return found;
}

result<std::size_t> read_choice(const value& what, const std::vector<std::string_view>& words) {
  auto* found = std::get_if<std::string>(&what);
  std::string all;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (found != nullptr && *found == words[i]) return i;
    all += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + quoted(std::string(words[i]));
  }
  return mismatch(all, what);
}

result<std::size_t> read_boolean_or(const value& what, const std::vector<std::string_view>& words) {
  if (auto* found = std::get_if<bool>(&what)) return *found ? 1 : 0;
  auto* word = std::get_if<std::string>(&what);
  if (word != nullptr && (*word == "true" || *word == "false")) return *word == "true" ? 1 : 0;
  std::string all = "true, false";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (word != nullptr && *word == words[i]) return i + 2;
    all += (i + 1 == words.size() ? " or " : ", ") + quoted(std::string(words[i]));
  }
  return mismatch(all, what);
}

result<std::string> read_text(const value& what) {
  auto* found = std::get_if<std::string>(&what);
  if (found == nullptr) return mismatch("text in quotes", what);
  return *found;
}

result<nanoseconds> read_duration(const value& what, nanoseconds low, nanoseconds high) {
  auto* found = std::get_if<std::string>(&what);
  if (found != nullptr) {
    auto parsed = parse_duration(*found);
    if (parsed && *parsed >= low && *parsed <= high) return parsed;
  }
  return mismatch("a time with its unit, as in \"250us\", \"200ms\", \"1.5s\" or \"10min\", from " +
                    toml_of(low) + " to " + toml_of(high),
                  what);
}

result<byte_count> read_bytes(const value& what) {
  if (auto* whole = std::get_if<std::int64_t>(&what); whole != nullptr && *whole >= 0)
    return byte_count{static_cast<std::uint64_t>(*whole)};
  if (auto* found = std::get_if<std::string>(&what))
    if (auto parsed = parse_bytes(*found)) return parsed;
  return mismatch("a size, as in \"64KiB\", \"2GiB\" or \"2GB\"", what);
}

result<byte_rate> read_rate(const value& what) {
  if (auto* found = std::get_if<std::string>(&what))
    if (auto parsed = parse_rate(*found)) return parsed;
  return mismatch("a rate, as in \"100Mbit/s\", \"10MB/s\" or \"unlimited\"", what);
}

std::string toml_of(nanoseconds duration) {
  struct unit {
    std::int64_t size;
    std::string_view name;
  };
  constexpr std::array units{
    unit{3'600'000'000'000, "h"}, unit{60'000'000'000, "min"}, unit{1'000'000'000, "s"},
    unit{1'000'000, "ms"},        unit{1'000, "us"},           unit{1, "ns"}};
  if (duration.count() == 0) return "\"0s\"";
  for (auto& u : units)
    if (duration.count() % u.size == 0)
      return '"' + std::to_string(duration.count() / u.size) + std::string(u.name) + '"';
  return "";
}

std::string toml_of(byte_count bytes) {
  constexpr std::array names{"GiB", "MiB", "KiB"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto size = 1ull << (30 - 10 * i);
    if (bytes.value != 0 && bytes.value % size == 0)
      return '"' + std::to_string(bytes.value / size) + names[i] + '"';
  }
  return '"' + std::to_string(bytes.value) + '"';
}

std::string toml_of(byte_rate rate) {
  if (rate.bytes_per_s == 0) return "\"unlimited\"";
  // All digits, without an exponent: exact, and in the grammar of rates.
  std::array<char, 400> digits{};
  auto end = std::to_chars(digits.data(), digits.data() + digits.size(), rate.bytes_per_s,
                           std::chars_format::fixed)
               .ptr;
  return '"' + std::string(digits.data(), end) + "B/s\"";
}

}  // namespace shoal::app
