#pragma once
// Training as symbols: what a block's weights, activations and gradients are in the simulator.
//
//   a(0) = h(step, g)     a(b+1) = h(a(b), w(b))           forward; the loss comes from the last a
//   d(n) = h(a(n))        d(b)   = h(d(b+1), w(b))         backward
//   gradient of block b from micro-batch g: h(d(b+1), a(b), w(b)); gradients add up as integers
//   w(b) after a step = h(w(b), sum of gradients, clip factor, learning rate)
//
// A micro-batch that is missing, counted twice, or computed with other weights changes every
// number that comes after it. Addition commutes here: the order is the trainer's own test.

#include <cstdint>
#include <vector>

#include "core/job.hpp"
#include "core/messages.hpp"

namespace shoal::sim {

/// A 64-bit mix of its arguments, in order. Quick: the simulator lives in it.
std::uint64_t mix(std::uint64_t a, std::uint64_t b);
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return mix(mix(a, b), c);
}

std::uint64_t initial_weights(block_index block);
std::uint64_t input_of(step_id step, micro_batch_index g);
std::uint64_t forward(std::uint64_t activation, std::uint64_t weights);
std::uint64_t gradient(std::uint64_t from_right, std::uint64_t activation, std::uint64_t weights);
std::uint64_t backward(std::uint64_t from_right, std::uint64_t weights);
std::uint64_t loss_gradient(std::uint64_t last_activation);
double loss_of(std::uint64_t last_activation);
double squared_norm_of(std::uint64_t sum);
double validation_loss_of(micro_batch_index g, std::uint64_t last_block_weights);
std::uint64_t apply(std::uint64_t weights, std::uint64_t sum, const core::verdict& word);

/// How often each of up to 16 micro-batches was added: four bits each.
constexpr std::uint32_t counted_micro_batches_max = 16;
inline std::uint64_t counted_once(micro_batch_index g) { return std::uint64_t{1} << (4 * g); }
std::uint64_t all_counted_once(std::uint32_t micro_batches);

/// The whole job as one undisturbed process computes it.
struct reference {
  /// [step][block], step 0 to the last.
  std::vector<std::vector<std::uint64_t>> weights;
  /// [round], 1 to the last + 1, the closing one; without view.
  std::vector<core::verdict> verdicts;
};
reference make_reference(const core::job_options& job, std::uint32_t block_count);

}  // namespace shoal::sim
