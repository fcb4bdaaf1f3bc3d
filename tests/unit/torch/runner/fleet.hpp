#pragma once
// Several stage runners in one process, and a lead that decides their rounds and compares each with
// the reference.

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.hpp"
#include "torch/reference.hpp"
#include "torch/runner/runner.hpp"
#include "unit/torch/helpers.hpp"
#include "unit/torch/runner/fake_network.hpp"

namespace shoal::engine::test {

/// A replica by its nodes and the number of blocks of each, and its micro-batches.
struct chain_of_nodes {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> stages;
  std::uint32_t micro_batches = 0;
};
core::layout make_layout(const std::vector<chain_of_nodes>& replicas);

/// What the reference makes of a job: by round, digests before it and what it came to.
struct expected_run {
  explicit expected_run(const core::job_options& job);
  std::map<std::uint64_t, std::vector<std::uint64_t>> digests;  ///< before round r; T+1: at the end
  std::map<std::uint64_t, step_info> rounds;
  std::optional<double> last_validation;
};

/// Blocks of a checkpoint in memory.
class memory_store final : public core::block_store {
public:
  result<core::block_state> load(step_id checkpoint, block_index block) override;
  void put(step_id step, core::block_state state);
  /// Changes a byte of a block that is there.
  void damage(step_id step, block_index block);
  std::size_t count(step_id step) const;
  std::set<step_id> steps() const;

private:
  mutable std::mutex mutex_;
  std::map<std::pair<step_id, block_index>, core::block_state> states_;
};

class fleet {
public:
  explicit fleet(const core::job_options& job, std::uint64_t seed = 1);
  ~fleet();

  /// A new node with nothing in memory. `data` replaces small_data.
  void add(std::uint64_t node, std::unique_ptr<dataset> data = nullptr);
  /// The node ends, and its connections.
  void kill(std::uint64_t node);
  bool has(std::uint64_t node) const { return nodes_.contains(node); }
  core::stage_runner& at(std::uint64_t node) { return *nodes_.at(node).runner; }
  fake_network& network() { return network_; }
  memory_store& store() { return store_; }
  const core::job_options& job() const { return job_; }
  view_id view() const { return view_; }

  /// The next event of a node; fails the test when none comes.
  core::runner_event next(std::uint64_t node);
  template <class T>
  T wait_for(std::uint64_t node) {
    auto event = next(node);
    if (auto failed = std::get_if<core::runner_failed>(&event);
        failed && !std::is_same_v<T, core::runner_failed>)
      FAIL("node " << node << " failed: " << failed->why.text);
    REQUIRE(std::holds_alternative<T>(event));
    return std::get<T>(std::move(event));
  }
  /// The next report of a node; snapshots before it go into the store.
  core::stage_report next_report(std::uint64_t node);
  /// Drops events until a T comes.
  template <class T>
  T skip_to(std::uint64_t node) {
    for (;;)
      if (auto event = next(node); std::holds_alternative<T>(event))
        return std::get<T>(std::move(event));
  }

  /// Prepare messages for a new view: from `step`, with sources where `holders` has some.
  std::map<std::uint64_t, core::prepare> plan(const core::layout& shape, step_id step,
                                              bool checkpoint = false);
  /// Who stands where; updated by `halt_all`.
  std::map<std::uint64_t, core::standing> standings;
  /// Sends the plan to all who are in it, waits until they are ready, lets them begin.
  void enter(const core::layout& shape, step_id step, bool checkpoint = false);
  void send(const std::map<std::uint64_t, core::prepare>& plans);
  void begin(const std::map<std::uint64_t, core::prepare>& plans);
  /// Halts all nodes and takes their standings.
  void halt_all();
  /// Where those who stand can meet: the newest step at which all blocks have a holder, else the
  /// newest whole checkpoint, or 0.
  struct meeting {
    step_id step;
    bool checkpoint = false;
  };
  meeting find_meeting() const;
  /// Waits until the network has been given so many frames of the round, unless it is the closing
  /// one.
  void wait_for_frames(std::uint64_t count);

  /// Waits for the reports of the round, checks them against the reference, makes the verdict.
  core::verdict judge_round(const expected_run& expected);
  /// Gives it to all stages, or to some.
  void decide(const core::verdict& word, const std::vector<std::uint64_t>& nodes);
  void decide(const core::verdict& word);
  /// Rounds until the job is done.
  void finish(const expected_run& expected);

private:
  std::map<block_index, std::vector<node_id>> holders_at(step_id step) const;
  std::optional<core::verdict> verdict_on(step_id step) const;
  struct node {
    chain model;
    std::unique_ptr<dataset> data;
    std::unique_ptr<core::tensor_plane> plane;
    std::unique_ptr<core::stage_runner> runner;
    std::deque<core::runner_event> events;  // by events_mutex_
  };
  core::member member_of(std::uint64_t node) const;
  void check_snapshot(const core::runner_snapshot& snapshot);

  core::job_options job_;
  std::size_t block_count_;
  fake_network network_;
  memory_store store_;
  std::mutex events_mutex_;
  std::condition_variable arrived_;
  std::map<std::uint64_t, node> nodes_;
  std::vector<node> dead_;
  view_id view_;
  step_id round_;
  core::layout shape_;
  const expected_run* expected_ = nullptr;
};

/// The nodes of a layout.
std::vector<std::uint64_t> numbers_of(const core::layout& shape);

}  // namespace shoal::engine::test
