#pragma once
// A scenario for the pipeline simulator, as JSON. `configs/scenarios/` has some that run.
//
//   { "schedule": {"name": "1f1b", "ranks": 4, "micro_batches": 8},
//     "stage": {"forward": "10ms", "backward": "20ms", "input_bytes": "2MiB"},
//     "link": {"latency": "5ms", "rate": "100Mbit/s"} }
//
//   key                what it is                                                        default
//   schedule           name, ranks, micro_batches, chunks, group, batches, warm_up,      required
//                      replicas, recompute, live_max as for `shoal schedule`; or csv:
//                      a table as text
//   stage, stages      one object for all virtual stages, or a list with one for each:   required
//                      forward, backward, input_gradient, weight_gradient, recompute,
//                      optimizer (durations), input_bytes, stash_bytes, parameter_bytes
//   link               between any two ranks: latency and rate; or a list of these with  no time
//                      `bytes`, in rising order
//   links              other links: a list of from, to, table (as link)                  none
//   speeds             of each rank, relative                                            1
//   machines           of each rank, numbers; those of one share a card                  none
//   card_rate          of a card, each way                                               unlimited
//   half_duplex, blocking_sends, recompute_waits                                         false
//   cell_overhead, overlap, jitter, seed                                                 0s, 1, 0,
//   0 replicas           how many alike run side by side                                   1
//   reduction          kind ("ring", "partial_sums"), link, pieces, norm                 ring
//   step_overhead                                                                        0s

#include <string>

#include "base/result.hpp"
#include "core/pipeline/simulation.hpp"

namespace shoal::app {

struct scenario {
  core::pipeline_plan plan;
  core::simulation_costs costs;
  core::reduction_costs reduction;
  std::uint32_t replicas = 1;
};

constexpr std::size_t scenario_bytes_max = 64 << 20;

/// Reads a scenario, at most `scenario_bytes_max`. The schedule is made and validated.
/// `errc::config` with the JSON path, what was expected there and what was found, or what the
/// schedule's rules say.
result<scenario> parse_scenario(const std::string& text);

/// Runs it, with records if asked for.
result<core::simulation> run_scenario(const scenario& what, bool timeline);

}  // namespace shoal::app
