#include "base/units.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <span>

namespace shoal {

namespace {

struct unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::uint64_t kilo = 1000, kibi = 1024;

// In order of size: text_of takes the last that fits.
constexpr std::array durations{
  unit{"ns", 1},
  unit{"us", kilo},
  unit{"ms", kilo* kilo},
  unit{"s", kilo* kilo* kilo},
  unit{"min", 60 * kilo* kilo* kilo},
  unit{"h", 3600 * kilo* kilo* kilo},
};
constexpr std::array binary_bytes{
  unit{"B", 1},
  unit{"KiB", kibi},
  unit{"MiB", kibi* kibi},
  unit{"GiB", kibi* kibi* kibi},
  unit{"TiB", kibi* kibi* kibi* kibi},
};
constexpr std::array decimal_bytes{
  unit{"kB", kilo},
  unit{"KB", kilo},
  unit{"MB", kilo* kilo},
  unit{"GB", kilo* kilo* kilo},
  unit{"TB", kilo* kilo* kilo* kilo},
};
constexpr std::array bits{
  unit{"bit", 1},
  unit{"kbit", kilo},
  unit{"Kbit", kilo},
  unit{"Mbit", kilo* kilo},
  unit{"Gbit", kilo* kilo* kilo},
};

/// A number without sign or exponent, and what comes behind it.
struct quantity {
  std::string_view digits;
  std::string_view suffix;
};

bool split(std::string_view text, quantity& parts) {
  auto end = text.find_first_not_of("0123456789.");
  parts.digits = text.substr(0, end);
  parts.suffix = end == std::string_view::npos ? "" : text.substr(end);
  while (!parts.suffix.empty() && parts.suffix.front() == ' ') parts.suffix.remove_prefix(1);
  auto dot = parts.digits.find('.');
  return !parts.digits.empty() && parts.digits.front() != '.' && parts.digits.back() != '.' &&
         (dot == std::string_view::npos ||
          parts.digits.find('.', dot + 1) == std::string_view::npos);
}

const unit* find(std::span<const unit> units, std::string_view name) {
  for (auto& u : units)
    if (u.name == name) return &u;
  return nullptr;
}

/// digits * factor, exact for whole numbers; false when it is more than `most`.
bool multiply(std::string_view digits, std::uint64_t factor, std::uint64_t most,
              std::uint64_t& product) {
  auto end = digits.data() + digits.size();
  std::uint64_t whole = 0;
  if (auto read = std::from_chars(digits.data(), end, whole); read.ec != std::errc{})
    return false;
  else if (read.ptr == end) {
    if (whole > most / factor) return false;
    product = whole * factor;
    return true;
  }
  double value = 0;
  if (std::from_chars(digits.data(), end, value).ec != std::errc{}) return false;
  value = std::round(value * static_cast<double>(factor));
  // 2^64 is a double, 2^64 - 1 is not: compare below the bound.
  if (value >= static_cast<double>(most)) return false;
  product = static_cast<std::uint64_t>(value);
  return true;
}

error wrong(std::string_view text, std::string_view what) {
  return {errc::config, "\"" + std::string(text) + "\" " + std::string(what)};
}

std::string three_digits(double value, std::string_view name) {
  int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, "%.*f %.*s", decimals, value, static_cast<int>(name.size()),
                name.data());
  return buffer;
}

}  // namespace

result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  quantity parts;
  if (!split(text, parts))
    return wrong(text, "is not a duration; write one like \"200ms\" or \"1.5s\"");
  auto* u = find(durations, parts.suffix);
  if (u == nullptr)
    return wrong(text, parts.suffix.empty() ? "has no unit; add ns, us, ms, s, min or h"
                                            : "has an unknown unit; use ns, us, ms, s, min or h");
  std::uint64_t count = 0;
  if (!multiply(parts.digits, u->factor, INT64_MAX, count))
    return wrong(text, "is too long; at most 292 years fit");
  return std::chrono::nanoseconds(static_cast<std::int64_t>(count));
}

result<byte_count> parse_bytes(std::string_view text) {
  quantity parts;
  if (!split(text, parts))
    return wrong(text, "is not a size; write one like \"64KiB\" or \"2GiB\"");
  auto* u = parts.suffix.empty() ? &binary_bytes[0] : find(binary_bytes, parts.suffix);
  if (u == nullptr) u = find(decimal_bytes, parts.suffix);
  if (u == nullptr)
    return wrong(text, "has an unknown unit; use B, KiB, MiB, GiB, TiB, kB, MB, GB or TB");
  byte_count bytes;
  if (!multiply(parts.digits, u->factor, UINT64_MAX, bytes.value))
    return wrong(text, "is too large; at most 16 EiB fit");
  return bytes;
}

result<byte_rate> parse_rate(std::string_view text) {
  constexpr std::string_view help =
    "is not a rate; write one like \"100Mbit/s\" or \"10MB/s\", or \"unlimited\"";
  if (text == "unlimited") return byte_rate{0};
  quantity parts;
  if (!split(text, parts) || !parts.suffix.ends_with("/s")) return wrong(text, help);
  auto name = parts.suffix.substr(0, parts.suffix.size() - 2);
  double per_byte = 1;
  auto* u = find(bits, name);
  if (u != nullptr) per_byte = 8;
  if (u == nullptr) u = find(binary_bytes, name);
  if (u == nullptr) u = find(decimal_bytes, name);
  if (u == nullptr) return wrong(text, help);
  double value = 0;
  if (std::from_chars(parts.digits.data(), parts.digits.data() + parts.digits.size(), value).ec !=
      std::errc{})
    return wrong(text, help);
  if (value == 0)
    return wrong(text, "lets nothing through; write \"unlimited\" for a link as it is");
  return byte_rate{value * static_cast<double>(u->factor) / per_byte};
}

std::string text_of(std::chrono::nanoseconds duration) {
  auto count = static_cast<double>(duration.count());
  if (count == 0) return "0 s";
  if (count < 0)  // the lowest number has no opposite
    return "-" + text_of(std::chrono::nanoseconds(-std::max(duration.count(), -INT64_MAX)));
  if (count < kilo) return std::to_string(duration.count()) + " ns";
  // 999.5 us reads "1.00 ms"; minutes and hours begin at two, "90.0 s" says more than "1.50 min".
  std::size_t best = 1;
  while (best + 1 < durations.size() &&
         count >= static_cast<double>(durations[best + 1].factor) * (best + 1 <= 3 ? 0.9995 : 2))
    ++best;
  return three_digits(count / static_cast<double>(durations[best].factor), durations[best].name);
}

std::string text_of(byte_count bytes) {
  if (bytes.value < kibi) return std::to_string(bytes.value) + " B";
  std::size_t best = 1;
  auto value = static_cast<double>(bytes.value);
  while (best + 1 < binary_bytes.size() &&
         value >= static_cast<double>(binary_bytes[best + 1].factor) * 0.9995)
    ++best;
  return three_digits(value / static_cast<double>(binary_bytes[best].factor),
                      binary_bytes[best].name);
}

}  // namespace shoal
