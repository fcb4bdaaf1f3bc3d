#pragma once
// Cuts of a chain over unequal devices in a given order, and depths of unequal replicas.
//
//   devices   fast   slow   fast        a slow one may get little, or nothing at all
//   blocks    0..5     -    6..9

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/plan/cuts.hpp"
#include "core/plan/partition_replicated.hpp"

namespace shoal::core::planning {

struct ordered_device {
  double speed = 1;  ///< above 0
  double memory_bytes = std::numeric_limits<double>::infinity();
};

struct ordered_stage {
  std::uint32_t device = 0;
  index_range blocks;
  bool recompute = false;
};

struct ordered_options {
  double bytes_per_time = 0;                 ///< of the links between neighbours; 0: unlimited
  std::uint32_t micro_batches = UINT32_MAX;  ///< a stage stashes min(this, stages from it on)
  bool may_recompute = false;                ///< a choice of each stage but the last
};

struct ordered_cut {
  std::vector<ordered_stage> stages;
  double bottleneck = 0;
};

/// The cut with the least bottleneck whose stages lie on devices in the given order, leaving out
/// those that would not help; of equals the one with fewest stages. A stage takes compute / speed,
/// or 2 * input bytes / rate on its link where that is longer. Nothing when none fits into memory.
/// O(N^2 K^2).
std::optional<ordered_cut> cut_in_order(const std::vector<chain_block>& blocks,
                                        const std::vector<ordered_device>& devices,
                                        const ordered_options& options);

struct replica_set {
  std::vector<std::uint32_t> depths;  ///< of each replica, deepest first
  std::vector<std::uint32_t> shares;  ///< micro-batches of each
  double finish = 0;                  ///< when the last replica ends
};

/// How `nodes` alike nodes form replicas, which may differ in depth and in micro-batches, so that
/// `micro_batches` end as early as can be. `paces[p - 1]` is how a replica of p stages moves. By
/// bisection over the end, with a knapsack of nodes: O(nodes * paces.size() * log(time)). Uses no
/// more nodes than it needs. Nothing when there are no nodes or paces.
std::optional<replica_set> best_replicas(const std::vector<pace>& paces, std::uint32_t nodes,
                                         std::uint32_t micro_batches);

}  // namespace shoal::core::planning
