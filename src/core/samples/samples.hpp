#pragma once
// Which samples a micro-batch holds: a pure function of the seed.
//
// Position q = (step-1)*N*m + g*m + i counts samples from the beginning of the job. In each epoch
// of `count` positions every sample comes exactly once, in an order shuffled by (seed, epoch): a
// Feistel network over the next power of four, walked until it lands inside [0, count) (Black and
// Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002, section 3). No table, no state.

#include <cstdint>
#include <vector>

#include "base/strong_id.hpp"

namespace shoal::core {

struct sample_order {
  std::uint64_t seed = 0;
  std::uint64_t count = 1;             ///< samples in the data set
  std::uint32_t micro_batches = 1;     ///< N
  std::uint32_t micro_batch_size = 1;  ///< m
};

/// The image of `index` under the permutation of [0, count) named by (seed, epoch).
std::uint64_t shuffled(std::uint64_t seed, std::uint64_t epoch, std::uint64_t count,
                       std::uint64_t index);

/// The m samples of micro-batch g of the round `step` (1-based).
std::vector<std::uint64_t> samples_of(const sample_order& order, step_id step, micro_batch_index g);

/// The m validation samples of validation micro-batch g: the same at every validation, in order,
/// wrapping around when the split is smaller.
std::vector<std::uint64_t> validation_samples_of(const sample_order& order, micro_batch_index g);

}  // namespace shoal::core
