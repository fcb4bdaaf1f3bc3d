#pragma once
// The closed forms behind the search for grids: one shape of pipeline, any number of replicas.

#include "core/plan/costs.hpp"
#include "core/plan/grid_search.hpp"

namespace shoal::core::planning {

/// What the closed forms need to know about one replica.
struct pipeline_shape {
  std::uint32_t depth = 1;
  std::uint32_t chunks = 1;
  double slowest_s = 0;   ///< node, a micro-batch
  double sum_s = 0;       ///< of all stages
  double hop_s = 0;       ///< to the next virtual stage: transfer and latency
  double transfer_s = 0;  ///< of it, what keeps the link busy
};

/// Micro-batches in flight at node 0 in rank-shares, as far as the schedule goes.
double in_flight_of(const pipeline_shape& shape, stage_order schedule, std::uint32_t micro_batches);

/// The same of virtual stage `s`, in micro-batches: what its memory must hold.
std::uint32_t stash_count(const pipeline_shape& shape, stage_order schedule,
                          std::uint32_t micro_batches, std::uint32_t s);

/// Seconds from the first forward to the last backward.
double span_seconds(const pipeline_shape& shape, stage_order schedule, std::uint32_t micro_batches);

/// Sets risk, pause_s, bubble and score of a plan whose times, cuts and shape are set.
void set_score(const grid_request& request, const costs& cost, grid_plan& plan);

/// Seconds or money for a step that takes `step_s` on so many nodes; without the pause.
double score_of(const grid_request& request, double step_s, std::uint32_t depth,
                std::uint32_t replicas);

}  // namespace shoal::core::planning
