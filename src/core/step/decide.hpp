#pragma once
// The verdict on a round as a pure function: what the lead says to all, and what the reference
// (one process, no lead) says to itself. Every bit of it is fixed by the job and the arguments.

#include <cstdint>
#include <optional>
#include <vector>

#include "core/job.hpp"
#include "core/messages.hpp"

namespace shoal::core {

/// What is known of a round when all its sums are complete.
struct round_facts {
  step_id step;                       ///< the round
  std::vector<double> losses;         ///< by micro-batch, N of them; empty in the closing round
  std::vector<double> squared_norms;  ///< of the summed gradients by block, in chain order
  std::optional<not_finite> offence;  ///< the first one that a stage saw
};

struct judgement {
  verdict what;  ///< without view and last_of_view
  std::optional<not_finite>
    offence;  ///< the first one known; `block` counts from the last for a loss
};

/// Sums losses in tree order (mean over N) and squared norms in chain order, in float64. A loss,
/// gradient or norm that is not finite stops the job or skips the step, as the job says. The round
/// after the last step closes the job.
judgement judge(const job_options& job, const round_facts& facts);

/// The mean of the validation losses, by validation micro-batch, in the order of the tree with
/// leaves of one.
double validation_mean(const std::vector<double>& losses);

}  // namespace shoal::core
