#pragma once
// Quantities as people write them: "200ms", "2GiB", "100Mbit/s".

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace shoal {

/// A number of bytes; powers of two in text ("2GiB"), powers of ten accepted ("2GB").
struct byte_count {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(byte_count, byte_count) = default;
};

/// A data rate. Text is in bits as on a network card ("100Mbit/s") or bytes ("10MB/s").
struct byte_rate {
  double bytes_per_s = 0;  // 0 is unlimited
  friend constexpr auto operator<=>(byte_rate, byte_rate) = default;
};

/// "250us", "200ms", "1.5s", "10min", "2h". A bare number has no unit and is refused.
result<std::chrono::nanoseconds> parse_duration(std::string_view text);
/// "512", "64KiB", "2GiB", "2GB".
result<byte_count> parse_bytes(std::string_view text);
/// "100Mbit/s", "1Gbit/s", "10MB/s", "unlimited".
result<byte_rate> parse_rate(std::string_view text);

/// With three digits and a fitting unit: "1.25 s", "312 ms".
std::string text_of(std::chrono::nanoseconds duration);
/// "1.50 GiB".
std::string text_of(byte_count bytes);

}  // namespace shoal
