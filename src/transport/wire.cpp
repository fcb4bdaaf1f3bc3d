#include "transport/wire.hpp"

#include <xxhash.h>
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>  // the same functions, with AVX2 or AVX-512 where the machine has them
#endif

#include <algorithm>

namespace shoal::transport {

std::uint64_t hash_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

running_hash::running_hash() : state_(XXH3_createState()) { restart(); }
void running_hash::restart() { XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_.get())); }
void running_hash::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state_.get()), bytes.data(), bytes.size());
}
std::uint64_t running_hash::value() const {
  return XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state_.get()));
}
void running_hash::freed::operator()(void* state) const {
  XXH3_freeState(static_cast<XXH3_state_t*>(state));
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
