#include "storage/hash.hpp"

#include <xxhash.h>

#include <new>

namespace shoal::storage {

namespace {

XXH3_state_t* as_state(void* state) { return static_cast<XXH3_state_t*>(state); }

}  // namespace

std::uint64_t hash_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t hash_of(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

running_hash::running_hash() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_64bits_reset(as_state(state_.get()));
}

void running_hash::freed::operator()(void* state) const { XXH3_freeState(as_state(state)); }

void running_hash::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(as_state(state_.get()), bytes.data(), bytes.size());
}

std::uint64_t running_hash::value() const { return XXH3_64bits_digest(as_state(state_.get())); }

}  // namespace shoal::storage
