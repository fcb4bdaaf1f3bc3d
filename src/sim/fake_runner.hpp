#pragma once
// The stage runner of the simulator: keeps core's contract for runners (core/ports.hpp) with
// symbols instead of tensors and virtual time instead of a thread.
//
//   prepare: roll forward, drop what is of another step, fetch what is missing, reach all peers
//   train:   forward and backward along the replica, partial sums to all other holders of a block,
//            report when all sums of all own blocks are complete, apply on the verdict
//
// One promise is everything: a report of a round says that its sums are complete, and they stay
// until the next prepare.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/ports.hpp"
#include "sim/checker.hpp"
#include "sim/network.hpp"

namespace shoal::sim {

class disk;

/// What runners say to one another.
struct frame {
  enum class kind : std::uint8_t { activation, gradient, partial, request, state, refusal };
  kind what = kind::activation;
  view_id view;
  step_id step;
  std::uint32_t block = 0;  ///< of the receiving chunk: activation, its first; gradient, its last
  std::uint32_t part = 0;   ///< micro-batch, or the sender's replica for partials
  std::uint64_t value = 0;
  std::uint64_t counts = 0;  ///< partial: which micro-batches are in it
};

/// The circumstances of a runner.
struct runner_world {
  const core::job_options& job;
  std::uint32_t block_count;
  process& home;
  rng& random;
  checker& check;
  disk& checkpoints;
  double fetch_failure_share = 0;
  std::function<void(core::runner_event)> tell;
  std::function<void(int to, frame, nanoseconds work)> send;
  std::function<bool(int peer)> refuses;    ///< nobody listens there
  std::function<bool(int peer)> reachable;  ///< else a connection attempt gets no answer
};

class fake_runner {
public:
  explicit fake_runner(runner_world world) : world_(std::move(world)) {}

  void get_ready(core::prepare plan, core::sender self);
  void begin(view_id view);
  void decide(core::verdict what);
  void halt();
  core::runner_progress progress() const;

  /// From another runner, whose place is `from`.
  void arrived(int from, const frame& f);
  /// The connection to the process at `peer` ended.
  void broken(int peer);

  const holding& state() const { return state_; }
  /// The view that it trains; 0: none.
  view_id trains() const { return phase_ == phase::training ? plan_.view : view_id{}; }

private:
  enum class phase : std::uint8_t { held, preparing, prepared, training, failed };
  struct partial {
    std::uint64_t sum = 0;
    std::uint64_t counts = 0;
  };
  using block_sums = std::map<block_index, std::map<replica_index, partial>>;

  // preparing
  void fetch_missing();
  void fetch(std::size_t missing, std::size_t source);
  void serve(int from, const frame& f);
  void take_state(const frame& f);
  void next_source(block_index block);
  void load(block_index block);
  void have(block_index block, std::uint64_t weights);
  void reach_peers(std::size_t peer, int attempts);
  void fail(errc code, std::string why, node_id suspect, step_id damaged = {});

  // training
  void start_round();
  void run_forward(core::index_range chunk, micro_batch_index g, std::uint64_t activation);
  void run_backward(core::index_range chunk, micro_batch_index g, std::uint64_t from_right);
  void own_sums_done();
  void totals_when_all_there();
  void report();
  void apply(const core::verdict& word);
  void snapshot();

  /// Runs `what` after `delay`, unless the work was stopped meanwhile.
  void work(nanoseconds delay, task what);
  nanoseconds some(nanoseconds least, nanoseconds most);
  int place_of(node_id node) const;
  node_id node_at(int place) const;
  const core::block_runs& blocks() const;
  core::index_range micro_batches() const;
  core::index_range chunk_of(block_index block) const;
  /// Of this replica.
  node_id holder_here(block_index block) const;
  bool is_last(core::index_range chunk) const;
  bool closing() const { return state_.applied.value >= world_.job.training.steps; }

  runner_world world_;
  phase phase_ = phase::held;
  std::uint64_t epoch_ = 0;  // grows when work is stopped
  holding state_;
  core::prepare plan_;
  core::sender self_;
  core::place at_;
  bool placed_ = false;

  bool rolled_ = false;                       // preparing: our own blocks are at the meeting step
  std::map<block_index, std::size_t> asked_;  // missing blocks and which source is being asked
  std::set<block_index> lacking_;
  std::vector<std::pair<int, frame>> requests_;  // of a view that we have not been told of

  std::vector<std::pair<int, frame>> early_;  // of this view, but we are not there yet
  std::map<std::pair<block_index, micro_batch_index>, std::uint64_t> inputs_;  // of blocks
  std::map<micro_batch_index, double> losses_;
  std::uint32_t backward_done_ = 0;  // over all chunks
  std::map<block_index, partial> own_;
  block_sums partials_;
  std::map<block_index, std::uint64_t> totals_;
  bool reported_ = false;
};

}  // namespace shoal::sim
