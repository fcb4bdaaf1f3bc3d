#pragma once
// Turns the local sums of a round into total gradients, together with the other holders.
//
//   a block's last backward is done
//      |  start: my pieces, cut into shards, go to the shards' holders
//   exchanging: pieces of my shard come in; they are added in the order of the tree, the result is
//      |        my shard of the total and goes to the others; their shards come into place
//   summed: copies of tied parameters exchange their totals inside the replica, added in chain
//   order
//      |
//   done: squared norm
//
// With one replica there is nothing to exchange and the local sum is the total. Blocks go their
// ways independently, so that the exchange overlaps with what is left to compute.

#include <cstdint>
#include <map>
#include <vector>

#include "core/ports.hpp"
#include "torch/runner/holdings.hpp"
#include "torch/runner/inbox.hpp"
#include "torch/runner/stage_facts.hpp"

namespace shoal::engine {

/// Of one round. Owned by the trainer's thread; all referred to must outlive it.
class reducer {
public:
  reducer(const stage_facts& facts, holdings& blocks, inbox& in, core::tensor_plane& plane,
          step_id round);

  /// All gradients of `block` have been added to its slots. Each block once.
  void start(block_index block);
  /// Does one small piece of work; false when there is none until a frame comes or a block starts.
  bool work();
  /// All blocks are done.
  bool complete() const { return done_count_ == facts_.blocks().size(); }
  /// Of the total gradient of a block that is done, later copies of tied parameters left out.
  double squared_norm(block_index block) const { return blocks_.at(block).squared_norm; }

private:
  enum class phase : std::uint8_t { computing, exchanging, summed, done };
  struct block_sum {
    phase at = phase::computing;
    std::vector<at::Tensor> pieces;  // my shard of each piece, by number; undefined: not here yet
    std::size_t added = 0;           // additions done
    bool shard_done = false;
    at::Tensor total;
    std::vector<replica_index> awaited;  // whose shards of the total are not here yet
    std::uint32_t open_ties = 0;         // groups that are not added up yet
    double squared_norm = 0;
  };
  struct tie_sum {
    const std::vector<tie_member>* members = nullptr;
    std::vector<at::Tensor> parts;  // by member; undefined: not here yet
    bool done = false;
  };

  bool here(const tie_member& t) const { return facts_.blocks().contains(t.block); }
  void send_partials(block_index block, block_sum& sum);
  void expect_totals(block_index block, block_sum& sum);
  void send(node_id to, const frame_name& name, const at::Tensor& t);
  bool exchange(block_index block, block_sum& sum);
  bool add_next(block_index block, block_sum& sum);
  const at::Tensor& piece(block_index block, block_sum& sum, std::uint32_t number);
  void finish_shard(block_index block, block_sum& sum);
  bool take_totals(block_index block, block_sum& sum);
  void set_summed(block_index block, block_sum& sum);
  void send_tied(const tie_sum& tie, const tie_member& mine);
  bool add_ties();
  bool add_tie(tie_sum& tie);

  const stage_facts& facts_;
  holdings& held_;
  inbox& inbox_;
  core::tensor_plane& plane_;
  step_id round_;
  std::map<block_index, block_sum> blocks_;
  std::vector<tie_sum> ties_;  // with a member here
  std::uint32_t done_count_ = 0;
  bool fruitless_ = false;       // the last look found no work ...
  std::uint64_t looked_at_ = 0;  // ... at this inbox::news()
};

}  // namespace shoal::engine
