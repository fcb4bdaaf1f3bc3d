#pragma once
// A possible layout with its price. Nodes come in classes of like speed, so that nodes of a class
// can change places without changing the price.

#include <optional>
#include <vector>

#include "core/plan/costs.hpp"
#include "core/reduction/tree.hpp"

namespace shoal::core::planning {

/// A node as the search sees it.
struct worker {
  node_id node;
  double speed = 1;  ///< of its class: that of the fastest in it
  std::uint64_t memory_bytes = UINT64_MAX;
  friend bool operator==(const worker&, const worker&) = default;
};

/// One replica of a candidate. Worker s has parts s, s + stages, s + 2 stages, ... of the chain.
struct chain {
  std::vector<worker> workers;      ///< by stage
  std::vector<index_range> blocks;  ///< by part of the chain
  /// By stage, where the job leaves that to the planner; else empty. See `recomputes`.
  std::vector<bool> recompute;
  index_range micro_batches;
  double slowest_s = 0;  ///< the longest stage, or the link when that is slower, a micro-batch
  double fill_s = 0;     ///< the way through all links and back

  stage_index stages() const { return static_cast<stage_index>(workers.size()); }
  std::vector<index_range> chunks_of(stage_index s) const;
};

/// As many, of the same speed and memory stage by stage.
bool have_like_workers(const chain& a, const chain& b);

struct candidate {
  std::vector<chain> chains;
  double step_s = 0;      ///< expected
  double exchange_s = 0;  ///< part of it: gradients that nothing hides
  double redo_s = 0;      ///< beside it: steps that losses undo, spread over all steps
  std::uint64_t moved_bytes = 0;

  std::size_t worker_count() const;
  /// Without order and `ahead`.
  layout shape() const;
  bool is_redundant() const { return chains.size() > 1; }
  double cost_s() const { return step_s + redo_s; }
};

/// What a job says about prices.
struct price_list {
  const costs& cost;
  const job_options& job;
  reduction_tree tree;
  stage_order order = stage_order_of(job.parallelism.schedule);  ///< never as_job
};

/// Cuts blocks and micro-batches for chains of given workers: blocks so that the slowest stage is
/// as fast as can be, micro-batches so that all replicas end together, on leaves of the reduction
/// tree where that costs little. Nothing when a stage does not fit into its node, or there are
/// fewer micro-batches than chains.
std::optional<candidate> build(const price_list& prices, std::vector<std::vector<worker>> chains);

/// How many nodes a chain has, and their speeds together.
struct chain_size {
  stage_index stages = 1;
  double speed = 1;
};

/// No candidate of these chains takes less: as if blocks and micro-batches could be cut anywhere.
double least_seconds(const price_list& prices, const std::vector<chain_size>& chains);

/// Sets slowest_s, fill_s and the prices of the whole from the rest.
void reprice(const price_list& prices, candidate& c);

/// Whether a part of the chain runs forward again before it goes backward.
bool recomputes(const price_list& prices, const chain& replica, std::size_t part);

/// Where the job leaves it to the planner, lets those stages recompute that do not fit otherwise.
void choose_recompute(const price_list& prices, chain& replica);

/// How many chunks the job's order gives the stages of a chain of so many: 1 unless interleaved.
std::uint32_t chunks_of(const price_list& prices, stage_index stages);

/// Bytes that each stage of the chain needs.
std::vector<std::uint64_t> needed_bytes(const price_list& prices, const chain& replica);

/// What stage `s` needs with so many passes of its chunks in flight.
std::uint64_t needed_bytes(const price_list& prices, const chain& replica, stage_index s,
                           std::uint32_t stash_count);

/// Whether every stage fits into its node.
bool fits(const price_list& prices, const chain& replica);
bool fits(const price_list& prices, const candidate& c);

}  // namespace shoal::core::planning
