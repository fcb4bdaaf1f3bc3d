#pragma once
// One run of a small job in one layout, with everything real but processes and sockets.
//
//   runner(node 1) --- plane ---+                 reports                        decided
//   runner(node 2) --- plane ---+--- memory_hub   ------> coordinator machines ----------> compare
//   runner(node 3) --- plane ---+                 <------ (one a replica)
//                                                 verdicts
//
// The runners train on their own threads; coordinators and comparison belong to the test's thread.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/job.hpp"
#include "core/layout.hpp"
#include "shoal/trainer.hpp"
#include "unit/torch/with_torch.hpp"

namespace shoal::test {

/// What the reference makes of a job.
struct expected_run {
  /// Runs the reference; fails the test when that fails.
  explicit expected_run(const core::job_options& job);

  std::vector<std::vector<std::uint64_t>> digests;  ///< [s]: of each block's weights after step s
  std::vector<step_info> rounds;                    ///< [r-1]: of round r
  std::optional<double> last_validation;            ///< of the last weights
};

/// Trains the whole job in one view of this layout. Nothing when every digest of every holder,
/// every loss, norm, learning rate and validation loss has the bits of `expected`; else a sentence
/// about the first thing that differs or fails, with step and block.
std::optional<std::string> first_difference(const core::job_options& job, const core::layout& shape,
                                            const expected_run& expected);

}  // namespace shoal::test
