#pragma once
// How far each stage should run ahead, found by simulation: the searched schedule.
//
//   1F1B           warm-up p-1-r        least memory, stalls twice a turn on a slow link
//   eager          2(p-1-r)             hides a hop of up to half a turn
//   searched       what the hop needs   more in flight than 2 (p-1-r) where hops are far
//
// Starts from p-1-r + ceil(2 (p-1-r) hop / turn), tries both sides of it for all stages together,
// then stage by stage takes away what does not help.

#include <vector>

#include "base/result.hpp"
#include "core/pipeline/simulation.hpp"

namespace shoal::core {

struct warm_up_options {
  std::uint32_t micro_batches = 1;
  bool recompute = false;  ///< R before each B but on the last stage, as early as can be
  std::vector<std::uint32_t> live_max;  ///< micro-batches each rank can hold; empty: any
  std::uint32_t tries_max = 0;          ///< simulations; the best so far then wins. 0: no limit
};

struct searched_schedule {
  std::vector<std::uint32_t> warm_up;
  pipeline_plan plan;
  simulation expected;
  std::uint32_t tried = 0;  ///< simulations
};

/// Where the search starts, without a simulation: what the hops ask for, within `live_max`.
std::vector<std::uint32_t> estimated_warm_up(const simulation_costs& costs,
                                             const warm_up_options& options);

/// One linear chain, a rank a stage: as many ranks as `costs` has stages. Of equal times the one
/// that holds least. `errc::no_memory` when a rank cannot hold one micro-batch; errors of
/// `simulate`.
result<searched_schedule> search_warm_up(const simulation_costs& costs,
                                         const warm_up_options& options);

}  // namespace shoal::core
