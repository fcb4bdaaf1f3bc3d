#pragma once
// XXH3-64: fast, and finds damage. It does not stand up to an attacker.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace shoal::storage {

/// The hash of all bytes at once.
std::uint64_t hash_of(std::span<const std::byte> bytes);
std::uint64_t hash_of(std::string_view text);

/// The same hash, fed piece by piece.
class running_hash {
public:
  running_hash();
  void add(std::span<const std::byte> bytes);
  /// Of what was added so far.
  std::uint64_t value() const;

private:
  struct freed {
    void operator()(void* state) const;
  };
  std::unique_ptr<void, freed> state_;
};

}  // namespace shoal::storage
