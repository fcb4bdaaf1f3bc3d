#include "transport/wire.hpp"

#include <xxhash.h>

#include <algorithm>

namespace shoal::transport {

std::uint64_t hash_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string shown(std::span<const std::byte> bytes) {
  auto printable = [](std::byte b) { return b >= std::byte{0x20} && b < std::byte{0x7f}; };
  std::string text;
  if (std::ranges::all_of(bytes, printable)) {
    text += '"';
    for (auto b : bytes) text += static_cast<char>(b);
    return text + '"';
  }
  constexpr std::string_view digits = "0123456789abcdef";
  for (auto b : bytes) {
    if (!text.empty()) text += ' ';
    text += digits[std::to_integer<std::size_t>(b >> 4)];
    text += digits[std::to_integer<std::size_t>(b & std::byte{15})];
  }
  return text;
}

}  // namespace shoal::transport
