#pragma once
// What each block of a model costs on this machine, measured: times and bytes of one micro-batch.
//
//   embedding   forward  0.3 ms +- 1 %   backward  0.4 ms +- 2 %   ...
//   h.0         forward  4.1 ms +- 1 %   backward  8.3 ms +- 1 %   ...
//   h.1         as h.0
//
// The chain runs forward and backward as in training (same kernels, sums and threads), one block at
// a time, on real samples. Blocks of equal shapes are measured once. First passes warm up and do
// not count; disturbed ones are rejected (`robust_mean`). A block whose backward pass is unlikely
// for its forward pass (`core::is_likely`) was disturbed or is no usual block: all is measured
// again, and `core::suspicions` tells what that did not help.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/robust_mean.hpp"
#include "base/strong_id.hpp"
#include "core/job.hpp"
#include "shoal/data.hpp"
#include "shoal/model.hpp"

namespace shoal::engine {

/// Times are in seconds, of one micro-batch but for the optimizer's. Recomputing takes what forward
/// takes: it is the same pass again.
struct measured_block {
  std::string name;
  block_index measured_as =
    0;  ///< the block of equal shapes that was run; itself, or an earlier one
  robust_value forward;
  robust_value backward;
  robust_value optimizer;  ///< of a step
  std::uint64_t parameter_bytes = 0;
  std::uint64_t state_bytes = 0;      ///< of the optimizer
  std::uint64_t stash_bytes = 0;      ///< from forward to backward, the input included
  std::uint64_t input_bytes = 0;      ///< of the boundary before it
  std::uint64_t workspace_bytes = 0;  ///< more than the stash, at the worst moment of a pass
};

struct profile_options {
  std::uint32_t warm_up = 2;      ///< passes that do not count
  std::uint32_t passes_min = 7;   ///< that do
  std::uint32_t passes_max = 40;  ///< at most, while the interval is wider than wanted
  double half_width_max = 0.02;   ///< wanted: of the mean, of every forward and backward time
};

/// Called after each pass with its number, from 1.
using profile_callback = std::function<void(std::uint32_t pass, std::uint32_t passes_max)>;

/// Measures the chain in the calling thread, with training.threads. Needs memory for the distinct
/// blocks, their optimizer state and one micro-batch. `errc::data` when a sample cannot be read,
/// `errc::no_memory`, and what a block throws.
result<std::vector<measured_block>> profile(const core::job_options& job, const chain& model,
                                            const dataset& data, const profile_options& options,
                                            const profile_callback& on_pass = {});

}  // namespace shoal::engine
