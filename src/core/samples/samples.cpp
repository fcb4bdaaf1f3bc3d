#include "core/samples/samples.hpp"

#include <array>

#include "base/assert.hpp"
#include "base/rng.hpp"

namespace shoal::core {

namespace {

// More rounds than the four that theory asks of wide halves: ours may be one bit wide.
constexpr std::uint64_t round_count = 8;

/// A permutation of [0, 4^half_bits).
class feistel {
public:
  feistel(std::uint64_t key, unsigned half_bits)
    : key_(key), half_bits_(half_bits), mask_((std::uint64_t{1} << half_bits) - 1) {}

  std::uint64_t operator()(std::uint64_t value) const {
    auto left = value >> half_bits_, right = value & mask_;
    for (std::uint64_t round = 0; round < round_count; ++round) {
      auto mixed = left ^ (mix_key(std::array{key_, round, right}) & mask_);
      left = right;
      right = mixed;
    }
    return left << half_bits_ | right;
  }

private:
  std::uint64_t key_;
  unsigned half_bits_;
  std::uint64_t mask_;
};

/// The smallest h with count <= 4^h.
unsigned half_bits_for(std::uint64_t count) {
  unsigned h = 0;
  while ((count - 1) >> (2 * h) != 0) ++h;
  return h;
}

}  // namespace

std::uint64_t shuffled(std::uint64_t seed, std::uint64_t epoch, std::uint64_t count,
                       std::uint64_t index) {
  // Halves of at most 31 bits keep every shift defined; no data set comes near.
  SHOAL_ASSERT(count > 0 && count <= std::uint64_t{1} << 62 && index < count);
  feistel permute(mix_key(std::array{seed, epoch}, "sample order"), half_bits_for(count));
  // The cycle that index lies on comes back to it, so it enters [0, count) again. Fewer than four
  // steps are expected: the domain is under four times the count.
  auto at = permute(index);
  while (at >= count) at = permute(at);
  return at;
}

std::vector<std::uint64_t> samples_of(const sample_order& order, step_id step,
                                      micro_batch_index g) {
  SHOAL_ASSERT(step && g < order.micro_batches);
  std::uint64_t size = order.micro_batch_size;
  auto position = (step.before().value * order.micro_batches + g) * size;
  std::vector<std::uint64_t> samples(size);
  for (auto& sample : samples) {
    sample = shuffled(order.seed, position / order.count, order.count, position % order.count);
    ++position;
  }
  return samples;
}

std::vector<std::uint64_t> validation_samples_of(const sample_order& order, micro_batch_index g) {
  SHOAL_ASSERT(order.count > 0);
  std::uint64_t size = order.micro_batch_size;
  std::vector<std::uint64_t> samples(size);
  for (std::uint64_t i = 0; i < size; ++i) samples[i] = (g * size + i) % order.count;
  return samples;
}

}  // namespace shoal::core
