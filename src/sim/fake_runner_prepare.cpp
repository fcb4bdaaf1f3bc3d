// How the fake runner gets ready: roll forward, drop, fetch, connect.

#include <algorithm>

#include "sim/disk.hpp"
#include "sim/fake_runner.hpp"

namespace shoal::sim {

void fake_runner::get_ready(core::prepare plan, core::sender self) {
  ++epoch_;
  phase_ = phase::preparing;
  plan_ = std::move(plan);
  self_ = self;
  placed_ = core::find_place(plan_.shape, self_.node, at_);
  rolled_ = false;
  early_.clear();
  asked_.clear();
  lacking_.clear();
  work(some(10us, 3ms), [this] {
    bool can_roll = state_.has_sums && state_.applied.next() == plan_.step;
    if (plan_.roll_forward && can_roll) apply(*plan_.roll_forward);
    state_.has_sums = false;  // a round that nobody decided is done again
    if (state_.applied != plan_.step) {
      state_.blocks.clear();
      state_.last_verdict.reset();
    }
    state_.applied = plan_.step;
    rolled_ = true;
    for (auto& [from, f] : std::exchange(requests_, {})) serve(from, f);
    fetch_missing();
  });
}

void fake_runner::fetch_missing() {
  for (auto& m : plan_.missing) {
    state_.blocks.erase(m.block);
    lacking_.insert(m.block);
  }
  if (placed_)
    for (auto b : blocks().all())
      if (!state_.blocks.contains(b) && !lacking_.contains(b))
        return world_.check.fail("node " + std::to_string(self_.node.value) + " lacks block " +
                                 std::to_string(b) + ", and is told no source");
  for (std::size_t i = 0; i < plan_.missing.size(); ++i) fetch(i, 0);
  if (lacking_.empty()) reach_peers(0, 0);
}

void fake_runner::fetch(std::size_t missing, std::size_t source) {
  auto& m = plan_.missing[missing];
  if (m.holders.empty()) return load(m.block);
  if (source >= m.holders.size())
    return fail(errc::unreachable, "nobody gave block " + std::to_string(m.block),
                m.holders.back());
  asked_[m.block] = source;
  auto peer = place_of(m.holders[source]);
  if (world_.refuses(peer) || world_.random.uniform() < world_.fetch_failure_share)
    return work(some(50us, 1ms), [this, missing, source] { fetch(missing, source + 1); });
  world_.send(peer, {frame::kind::request, plan_.view, plan_.step, m.block, 0, 0, 0}, 0ns);
  work(1500ms, [this, missing, source] {  // no answer
    auto block = plan_.missing[missing].block;
    if (phase_ == phase::preparing && lacking_.contains(block) && asked_[block] == source)
      fetch(missing, source + 1);
  });
}

void fake_runner::serve(int from, const frame& f) {
  if (f.view > plan_.view || (f.view == plan_.view && phase_ == phase::preparing && !rolled_)) {
    requests_.emplace_back(from, f);  // our own prepare is under way
    if (requests_.size() > 64) requests_.erase(requests_.begin());
    return;
  }
  if (f.view < plan_.view) return;
  bool serves = phase_ == phase::preparing || phase_ == phase::prepared;
  auto held = state_.blocks.find(f.block);
  auto answer = f;
  answer.what = frame::kind::refusal;
  if (serves && held != state_.blocks.end() && state_.applied == f.step) {
    answer.what = frame::kind::state;
    answer.value = held->second;
  }
  world_.send(from, answer, some(0ns, 60ms));
}

void fake_runner::take_state(const frame& f) {
  if (lacking_.contains(f.block)) have(f.block, f.value);
}

void fake_runner::next_source(block_index block) {
  if (!lacking_.contains(block)) return;
  for (std::size_t i = 0; i < plan_.missing.size(); ++i)
    if (plan_.missing[i].block == block) return fetch(i, asked_[block] + 1);
}

void fake_runner::load(block_index block) {
  if (plan_.step.value != 0 && plan_.checkpoint != plan_.step)
    return world_.check.fail("block " + std::to_string(block) + " has no source at step " +
                             std::to_string(plan_.step.value));
  work(some(1ms, 80ms), [this, block] {
    if (plan_.step.value == 0) return have(block, initial_weights(block));
    auto weights = world_.checkpoints.load(plan_.step, block);
    if (!weights) return fail(errc::damaged, "its checkpoint is damaged or gone", {}, plan_.step);
    have(block, *weights);
  });
}

void fake_runner::have(block_index block, std::uint64_t weights) {
  state_.blocks[block] = weights;
  world_.check.has_weights(self_.node, plan_.step, block, weights);
  lacking_.erase(block);
  if (lacking_.empty()) reach_peers(0, 0);
}

void fake_runner::reach_peers(std::size_t peer, int attempts) {
  for (; peer < plan_.members.size(); ++peer, attempts = 0) {
    auto& m = plan_.members[peer];
    if (m.who.node == self_.node) continue;
    if (world_.refuses(m.at.control_port) || attempts > 20)
      return fail(errc::unreachable,
                  "node " + std::to_string(m.who.node.value) + " cannot be reached", m.who.node);
    if (!world_.reachable(m.at.control_port))
      return work(100ms, [this, peer, attempts] { reach_peers(peer, attempts + 1); });
  }
  work(some(100us, 5ms), [this] {
    phase_ = phase::prepared;
    core::runner_prepared made{plan_.view, {}};
    for (auto& [block, weights] : state_.blocks)
      if (placed_ && blocks().contains(block)) made.blocks.push_back({block, weights});
    world_.tell(std::move(made));
  });
}

}  // namespace shoal::sim
