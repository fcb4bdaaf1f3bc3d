#pragma once
// Chooses the layout for the nodes that are there.
//
// Used at each morph; `grid_search.hpp` is for many equal nodes. Every number of replicas is tried
// (or the depth that the job fixes), nodes spread over them evenly, so that left-over nodes deepen
// some and no node idles. Blocks are cut so that the slowest stage is as fast as can be, measured
// time by node speed; micro-batches go to replicas so that all end together, in ranges aligned to
// the reduction tree's leaves when that costs under 3 %. A layout is priced as
//
//   max over replicas ((m_r + p_r - 1) * slowest stage + way through the links) + exchange of stage
//   0
//
// plus the steps that losses undo where a block has one holder only (nodes.mean_life, half of the
// distance of checkpoints), and refused when a stage does not fit into its node. Within 5 % of the
// cheapest, a second holder of every block comes first, then using more nodes; within 2 % of that,
// moving less. The layout in force stays where the pause of leaving it would cost more than is won
// until the next node is lost.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/job.hpp"
#include "core/layout.hpp"

namespace shoal::core {

/// What one block costs at the job's m. Times of one micro-batch on a node of speed 1.
struct block_cost {
  std::string name;
  nanoseconds forward{};
  nanoseconds backward{};
  std::uint64_t parameter_bytes = 0;
  std::uint64_t state_bytes = 0;     ///< optimizer state
  std::uint64_t stash_bytes = 0;     ///< kept for backward, a micro-batch, without recompute
  std::uint64_t boundary_bytes = 0;  ///< input of the block, a micro-batch
};

struct plan_profile {
  std::vector<block_cost> blocks;
  double link_bytes_per_s = 1e9;
  nanoseconds link_latency{100'000};
};

/// A node that may be given work.
struct plan_node {
  node_id node;
  double speed = 1;                ///< of the profile's times; what is not above 0 counts as 1
  std::uint64_t memory_bytes = 0;  ///< what shoal may use; 0: not limited
};

struct plan_result {
  layout shape;
  std::vector<node_id> spares;
  nanoseconds step_expected{};
  std::uint64_t moved_bytes = 0;  ///< parameters and state that some node must fetch; 0 at first
  std::string reason;             ///< a sentence with the numbers behind the choice
};

/// Plans for `nodes` (any order, no duplicates; the result depends on their ids only through ties
/// and `present`). `present` is the layout in force, empty at first: among equals, the plan moves
/// least. `errc::too_few_nodes` when nodes_min is not met or the model does not fit on so few;
/// `errc::no_memory` when one block alone is too large for every node; the text says how much is
/// short and where.
result<plan_result> plan(const plan_profile& profile, const std::vector<plan_node>& nodes,
                         const layout& present, const job_options& job);

/// What a node's process takes beside its stage: libraries, kernels' workspace, buffers.
constexpr std::uint64_t process_reserve_bytes = 350ull << 20;

/// Bytes that a stage of `blocks` needs: parameters, gradients and partial sums, optimizer state,
/// the stash of `stash_count` forward passes of a chunk, and a reserve for the process itself.
std::uint64_t stage_bytes(const plan_profile& profile, const block_runs& blocks,
                          std::uint32_t stash_count, std::uint32_t slot_count, bool recompute);

}  // namespace shoal::core
