#pragma once
// What losses of nodes cost, spread over all time.

#include <chrono>
#include <cstddef>

#include "core/job.hpp"

namespace shoal::core::planning {

/// By what share everything takes longer when each of so many nodes is lost once in `mean_life`, on
/// average, and each loss costs `cost_s` seconds. 0 where nodes are not lost.
inline double loss_share(std::size_t nodes, double cost_s, nanoseconds mean_life) {
  auto life_s = std::chrono::duration<double>(mean_life).count();
  return life_s > 0 ? static_cast<double>(nodes) * cost_s / life_s : 0;
}

/// Steps that a loss undoes where a block has no second holder: half of what lies between two
/// checkpoints.
inline double redone_steps(const job_options& job) {
  return (job.checkpoint.every != 0 ? job.checkpoint.every : job.training.steps) / 2.0;
}

}  // namespace shoal::core::planning
