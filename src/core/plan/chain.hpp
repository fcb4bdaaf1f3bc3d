#pragma once
// One replica as the search sees it: who has which blocks, and the memory that takes. Nodes come in
// classes of like speed, so that nodes of a class can change places without changing the price.

#include <vector>

#include "core/plan/costs.hpp"
#include "core/plan/free_cuts.hpp"
#include "core/reduction/tree.hpp"

namespace shoal::core::planning {

/// What a job says about prices.
struct price_list {
  const costs& cost;
  const job_options& job;
  reduction_tree tree;
  free_cuts& free;  ///< of `cost`, recomputing where the job always does
  stage_order order = stage_order_of(job.parallelism.schedule);  ///< never as_job
};

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

/// Whether any of its nodes has less than endless memory.
bool has_limits(const chain& replica);

/// How many chunks the job's order gives the stages of a chain of so many: 1 unless interleaved.
std::uint32_t chunks_of(const price_list& prices, stage_index stages);

/// Whether a part of the chain runs forward again before it goes backward.
bool recomputes(const price_list& prices, const chain& replica, std::size_t part);

/// What the memory that a chain needs depends on, beside its nodes and cuts.
struct chain_load {
  std::uint32_t micro_batches = 0;  ///< a step
  std::uint32_t sums = 0;           ///< of gradients, at once
  friend bool operator==(const chain_load&, const chain_load&) = default;
};

/// That of the micro-batches it has.
chain_load load_of(const price_list& prices, const chain& replica);

/// By stage: passes of its chunks between forward and backward, at most.
std::vector<std::uint32_t> stash_counts(const price_list& prices, stage_index stages,
                                        std::uint32_t micro_batches);

/// Bytes that each stage of the chain needs; `load` as it is, unless told.
std::vector<std::uint64_t> needed_bytes(const price_list& prices, const chain& replica);
std::vector<std::uint64_t> needed_bytes(const price_list& prices, const chain& replica,
                                        chain_load load);

/// What stage `s` needs with so many passes of its chunks in flight.
std::uint64_t needed_bytes(const price_list& prices, const chain& replica, stage_index s,
                           std::uint32_t stash_count);

/// Whether every stage fits into its node.
bool fits(const price_list& prices, const chain& replica);
bool fits(const price_list& prices, const chain& replica, chain_load load);

/// Where the job leaves it to the planner, lets those stages recompute that do not fit otherwise.
void choose_recompute(const price_list& prices, chain& replica);
void choose_recompute(const price_list& prices, chain& replica, chain_load load);

}  // namespace shoal::core::planning
