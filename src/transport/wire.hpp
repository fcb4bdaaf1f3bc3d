#pragma once
// Numbers and hashes in fixed places of a byte string. Payloads travel as they lie in memory, so
// the house runs on little-endian machines only; the wire says so too.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace shoal::transport {

static_assert(std::endian::native == std::endian::little, "tensors travel as they lie in memory");

template <class T>
void put(std::span<std::byte> bytes, std::size_t at, T value) {
  std::memcpy(bytes.subspan(at, sizeof value).data(), &value, sizeof value);
}

template <class T>
T get(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.subspan(at, sizeof value).data(), sizeof value);
  return value;
}

/// Four letters as they lie on the wire.
constexpr std::uint32_t magic(const char (&letters)[5]) {
  std::uint32_t word = 0;
  for (int i = 3; i >= 0; --i) word = word << 8 | static_cast<unsigned char>(letters[i]);
  return word;
}

/// XXH3-64: finds damage, does not stand up to an attacker.
std::uint64_t hash_of(std::span<const std::byte> bytes);

/// The same hash, fed piece by piece.
class running_hash {
public:
  running_hash();
  /// Forgets what was added.
  void restart();
  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;

private:
  struct freed {
    void operator()(void* state) const;
  };
  std::unique_ptr<void, freed> state_;
};

/// Bytes for people: letters where they can be printed, else hex: `"GET "`, `16 03 01 02`.
std::string shown(std::span<const std::byte> bytes);

}  // namespace shoal::transport
