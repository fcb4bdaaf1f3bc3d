#pragma once
// The best grid for many equal nodes: how deep, how often replicated, cut where, with which
// micro-batch size and schedule, recomputing or not.
//
//   10,000 nodes = 96 depths x 8 micro-batch sizes x schedules x recompute x numbers of replicas
//     -> closed forms score all of them      (a few milliseconds)
//     -> the best few are cut with memory as a hard limit, and simulated if a simulator is given
//     -> the winner, the next three, and why, as text
//
// Closed form of a flush: a stage that keeps K micro-batches in flight has one through every
// max(slowest stage, (sum of stages + 2 (p-1) hops) / K), so
//
//   span = sum of stages + 2 (p-1) hops + (micro-batches - 1) * that.
//
// What is compared is seconds a step, or money for it where nodes have a price, made worse by two
// things: blocks that are held once cost the steps since a checkpoint when their node is lost, and
// the pause of moving from the layout in force is spread over the time until the next change.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/plan/plan.hpp"

namespace shoal::core {

/// The profile at one micro-batch size.
struct sized_profile {
  std::uint32_t micro_batch_size = 1;
  plan_profile profile;
};

/// The layout in force: replicas that are alike.
struct present_grid {
  std::uint32_t replicas = 0;
  std::vector<index_range> cuts;
};

/// A grid and what it is expected to take.
struct grid_plan {
  std::uint32_t micro_batch_size = 1;
  std::uint32_t depth = 1;
  std::uint32_t replicas = 1;
  std::uint32_t micro_batches = 1;  ///< of the replica with most
  std::uint32_t chunks = 1;         ///< a node; chunk c of node r is virtual stage c * depth + r
  stage_order schedule = stage_order::one_f_one_b;
  std::vector<index_range> cuts;         ///< by virtual stage
  std::vector<bool> recompute;           ///< by virtual stage; never the last
  std::vector<std::uint32_t> in_flight;  ///< by virtual stage: micro-batches kept at once, at most
  double span_s = 0;                     ///< of the pipeline
  double exchange_s = 0;                 ///< of gradients that nothing hides
  double step_s = 0;                     ///< their sum
  double bubble = 0;                     ///< share of the span that the slowest stage is idle
  double risk = 0;     ///< work lost to nodes that hold blocks alone, as a share of the step
  double pause_s = 0;  ///< to move there from the layout in force
  double score = 0;    ///< what is compared: seconds, or money, a step
  std::uint64_t stage_bytes_max = 0;  ///< what the fullest node needs
  std::uint32_t nodes() const { return depth * replicas; }
};

/// Seconds that the pipeline of one replica takes; for the finalists.
using grid_simulator = std::function<double(const sized_profile&, const grid_plan&)>;

struct grid_request {
  std::vector<sized_profile> profiles;  ///< of one model; not empty
  std::uint32_t samples = 1;            ///< a step; sizes that do not divide it are left out
  std::uint32_t nodes = 1;
  std::uint64_t memory_bytes = 0;  ///< of each; 0: not limited
  double reserve = 0.05;           ///< share of the memory that stays free
  std::uint32_t depth = 0;         ///< 0: any
  /// Not as_job or varuna, whose order is of one chain alone.
  std::vector<stage_order> schedules{stage_order::gpipe, stage_order::one_f_one_b,
                                     stage_order::eager, stage_order::searched};
  std::uint32_t chunks_max = 1;  ///< with interleaved: a node
  bool may_recompute = true;
  double price_per_hour = 0;  ///< of a node; 0: seconds are compared
  nanoseconds mean_life{};    ///< of a node; 0: nodes are not lost
  double redone_steps = 0;    ///< by a loss where blocks are held once
  nanoseconds next_change{};  ///< expected; 0: a pause does not count
  std::optional<present_grid> present;
  grid_simulator simulate;  ///< none: closed forms decide
  /// So many actions are simulated to compare finalists, and as many again to shift borders of the
  /// best of them while that helps. Small cases are searched nearly completely.
  std::uint64_t simulated_actions_max = 150'000;
};

struct grid_choice {
  grid_plan best;
  std::vector<grid_plan> next;  ///< up to three others, in order of score
  std::string reason;           ///< lines of text
};

/// The best grid. Deterministic. `errc::too_few_nodes` for none; `errc::config` for a request that
/// no grid can meet, with the nearest that one could; `errc::no_memory` when the model fits
/// nowhere: how much is short, and where.
result<grid_choice> search_grids(const grid_request& request);

/// Cuts `layers` into equal virtual stages, as Megatron does. `errc::config` when that would leave
/// layers out, with the nearest legal numbers.
result<std::vector<index_range>> cut_equally(std::uint32_t layers, std::uint32_t stages,
                                             std::uint32_t chunks);

}  // namespace shoal::core
