#pragma once
// What follows from a view's layout for one stage: its neighbours, its share of each sum, and every
// frame that it will get in a round. Worked out once a view; holds no state.

#include <cstdint>
#include <vector>

#include "core/job.hpp"
#include "core/layout.hpp"
#include "core/reduction/tree.hpp"
#include "core/schedule/schedule.hpp"
#include "shoal/model.hpp"
#include "torch/block_runtime.hpp"
#include "torch/runner/frames.hpp"

namespace shoal::engine {

/// A run of blocks of the stage, and its neighbours in the chain.
struct chunk {
  core::index_range blocks;
  node_id previous;  ///< nobody before the first block ...
  node_id next;      ///< ... and after the last
  /// What comes from the part before (nothing to the first one), and goes to the next.
  std::vector<tensor_spec> inputs, outputs;
  bool recomputes = false;  ///< its forward pass keeps only the inputs
  bool first() const { return !previous; }
  bool last() const { return !next; }
};

class stage_facts {
public:
  /// `job` and `model` must outlive this. `at` is a place in `shape`, which fits both (also by
  /// `check_order`).
  stage_facts(const core::job_options& job, const chain& model, view_id view, core::layout shape,
              core::place at);

  view_id view() const { return view_; }
  core::place at() const { return at_; }
  const core::block_runs& blocks() const { return mine().blocks; }
  const std::vector<chunk>& chunks() const { return chunks_; }
  node_id self() const { return mine().node; }
  bool is_member(node_id node) const;

  /// Micro-batches of the round; empty in the closing one.
  core::index_range training(step_id round) const;
  /// Validation micro-batches of this replica in the round; empty when none is due.
  core::index_range validation(step_id round) const;
  /// What the stage does in the round.
  struct orders {
    std::vector<core::stage_action> actions;
    bool opportunistic = false;  ///< as core::schedule
    std::uint32_t live_max = 0;
  };
  orders orders_of(step_id round) const;

  // -- sums ---------------------------------------------------------------------------------------

  std::uint32_t replica_count() const { return static_cast<std::uint32_t>(shape_.replicas.size()); }
  /// Who holds `block` in `replica`.
  node_id holder(replica_index replica, block_index block) const;
  /// How this replica adds up its gradients.
  const core::accumulation& sums() const { return sums_[at_.replica]; }
  /// Pieces of all replicas are numbered in order; those of `replica` are this range.
  core::index_range pieces(replica_index replica) const;
  std::uint32_t piece_count() const { return first_piece_.back(); }
  const std::vector<core::piece_addition>& additions() const { return additions_; }
  /// The elements of a flat sum of `count` that `replica`'s holder adds up.
  struct shard {
    std::int64_t begin = 0;
    std::int64_t size = 0;
  };
  shard shard_of(std::int64_t count, replica_index replica) const;

  const ties& tied() const { return ties_; }
  /// Elements of all parameters of a block, and of one.
  std::int64_t element_count(block_index block) const;
  std::int64_t element_count(const tie_member& parameter) const;

  /// All frames that peers will send in the round, but totals, which nobody can send before we have
  /// sent our partial sums.
  std::vector<expected_frame> expected(step_id round) const;

private:
  const core::replica& chain_of(replica_index replica) const { return shape_.replicas[replica]; }
  const core::stage& mine() const { return chain_of(at_.replica).stages[at_.stage]; }
  void expect_boundaries(step_id round, const chunk& part, std::vector<expected_frame>& out) const;
  void expect_partials(step_id round, std::vector<expected_frame>& out) const;
  void expect_ties(step_id round, std::vector<expected_frame>& out) const;

  const core::job_options* job_;
  block_index block_count_;
  view_id view_;
  core::layout shape_;
  core::place at_;
  std::vector<chunk> chunks_;
  std::vector<core::accumulation> sums_;    // by replica
  std::vector<std::uint32_t> first_piece_;  // by replica, and the end
  std::vector<core::piece_addition> additions_;
  ties ties_;
  std::vector<std::vector<std::int64_t>> sizes_;  // [block][parameter]
};

}  // namespace shoal::engine
