#pragma once
// Gets the blocks that a new view gives us and that we do not hold: from peers, from a checkpoint,
// or as initial values.
//
//   block 3: holders 4, 7    ask 4 --broken, silent, does not have it, wrong digest--> ask 7 -->
//   fail block 5: no holder       checkpoint of the view's step, or initial values at step 0
//
// All peers are asked at once; their tensors arrive straight in the memory of a new block, which
// joins the holdings when it is whole and its digest is the one that its source named. A source
// that fails costs the memory that it may still write to, no more.

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/job.hpp"
#include "core/ports.hpp"
#include "core/time.hpp"
#include "torch/runner/holdings.hpp"
#include "torch/runner/inbox.hpp"

namespace shoal::engine {

/// Of one view. Owned by the trainer's thread; all referred to must outlive it.
class state_fetcher {
public:
  struct options {
    const core::job_options& job;
    const chain& model;
    holdings& blocks;
    inbox& in;
    core::tensor_plane& plane;
    core::block_store& store;
  };
  struct failure {
    error why;
    node_id suspect;
    step_id damaged_checkpoint;
  };

  /// For the stage that holds `wanted`. Blocks that are held and not missing by the plan are kept.
  state_fetcher(const options& with, const core::prepare& plan, const core::block_runs& wanted);

  /// Asks the first source of each block. The view is open.
  void ask(core::time_point now);
  /// Does one piece of work: loads or makes a block, takes in one that has arrived, turns to the
  /// next source. False when there is none until a frame comes or `deadline()` passes.
  result<bool> work(core::time_point now);
  /// Blocks are not to be had from `peer`.
  void lost(node_id peer, const error& why);
  /// All blocks are held.
  bool complete() const { return open_.empty(); }
  /// What `work` failed for, beyond its error.
  const failure& last_failure() const { return failure_; }
  /// When a source will have been silent for too long.
  std::optional<core::time_point> deadline() const;

private:
  struct fetch {
    std::vector<node_id> sources;  // untried, the next one last
    node_id source;                // asked; 0: none
    std::unique_ptr<block_runtime> block;
    std::vector<frame_name> awaited;  // not taken yet
    std::uint64_t digest = 0;         // as the source says
    bool has_digest = false;
    core::time_point heard;        // a tensor came, or it was asked
    std::optional<error> trouble;  // with `source`
  };

  void turn_to_next(block_index block, fetch& f, core::time_point now);
  result<bool> take_in(block_index block, fetch& f, core::time_point now);
  result<void> make_without_peers(block_index block);
  result<void> fail(error why, node_id suspect, step_id damaged_checkpoint = {});
  std::optional<core::time_point> silent_since(node_id source) const;

  options with_;
  view_id view_;
  step_id step_;
  step_id checkpoint_;
  std::map<block_index, fetch> open_;
  failure failure_;
};

}  // namespace shoal::engine
