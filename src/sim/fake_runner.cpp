#include "sim/fake_runner.hpp"

#include <algorithm>

#include "core/checkpoint/manifest.hpp"
#include "core/schedule/schedule.hpp"

namespace shoal::sim {

using core::index_range;

nanoseconds fake_runner::some(nanoseconds least, nanoseconds most) {
  return least +
         nanoseconds(world_.random.below(static_cast<std::uint64_t>((most - least).count()) + 1));
}

void fake_runner::work(nanoseconds delay, task what) {
  world_.home.later(delay, [this, epoch = epoch_, what = std::move(what)] {
    if (epoch == epoch_) what();
  });
}

int fake_runner::place_of(node_id node) const {
  for (auto& m : plan_.members)
    if (m.who.node == node) return m.at.control_port;
  world_.check.fail("node " + std::to_string(node.value) + " is not among the members of view " +
                    std::to_string(plan_.view.value));
  return 0;
}

node_id fake_runner::node_at(int place) const {
  for (auto& m : plan_.members)
    if (m.at.control_port == place) return m.who.node;
  return {};
}

const core::block_runs& fake_runner::blocks() const {
  return plan_.shape.replicas[at_.replica].stages[at_.stage].blocks;
}
index_range fake_runner::micro_batches() const {
  return plan_.shape.replicas[at_.replica].micro_batches;
}
index_range fake_runner::chunk_of(block_index block) const {
  for (auto chunk : blocks().chunks())
    if (chunk.contains(block)) return chunk;
  world_.check.fail("node " + std::to_string(self_.node.value) + " gets something for block " +
                    std::to_string(block) + ", which it does not hold");
  return {};
}
node_id fake_runner::holder_here(block_index block) const {
  return core::holders_of(plan_.shape, block)[at_.replica];
}
bool fake_runner::is_last(index_range chunk) const { return chunk.end == world_.block_count; }

core::runner_progress fake_runner::progress() const {
  return {plan_.view, state_.applied.next(), backward_done_};
}

void fake_runner::halt() {
  ++epoch_;
  phase_ = phase::held;
  early_.clear();
  work(some(10us, 5ms), [this] {
    core::standing now;
    now.applied = state_.applied;
    now.has_sums = state_.has_sums;
    now.last_verdict = state_.last_verdict;
    for (auto& [block, weights] : state_.blocks) now.blocks.push_back({block, weights});
    world_.tell(core::runner_halted{std::move(now)});
  });
}

// -- a round --------------------------------------------------------------------------------------

void fake_runner::begin(view_id view) {
  if (phase_ != phase::prepared || plan_.view != view) return;
  if (!placed_) {  // a spare
    ++epoch_;
    state_ = {};
    phase_ = phase::held;
    return;
  }
  std::erase_if(state_.blocks, [&](auto& b) { return !blocks().contains(b.first); });
  phase_ = phase::training;
  bool saved = plan_.checkpoint == state_.applied;
  if (closing() && !saved) snapshot();
  start_round();
}

void fake_runner::start_round() {
  inputs_.clear();
  losses_.clear();
  own_.clear();
  partials_.clear();
  totals_.clear();
  backward_done_ = 0;
  reported_ = state_.has_sums = false;
  if (closing()) return work(some(1ms, 5ms), [this] { report(); });
  for (auto b : blocks().all()) own_[b] = {};
  if (at_.stage == 0)
    for (auto g = micro_batches().begin; g < micro_batches().end; ++g)
      run_forward(chunk_of(0), g, input_of(state_.applied.next(), g));
  auto early = std::exchange(early_, {});
  for (auto& [from, f] : early) arrived(from, f);
}

void fake_runner::run_forward(index_range chunk, micro_batch_index g, std::uint64_t activation) {
  work(some(1ms, 20ms), [this, chunk, g, activation]() mutable {
    for (auto b = chunk.begin; b < chunk.end; ++b) {
      inputs_[{b, g}] = activation;
      activation = forward(activation, state_.blocks[b]);
    }
    if (is_last(chunk)) {
      losses_[g] = loss_of(activation);
      return run_backward(chunk, g, loss_gradient(activation));
    }
    world_.send(
      place_of(holder_here(chunk.end)),
      {frame::kind::activation, plan_.view, state_.applied.next(), chunk.end, g, activation, 0},
      0ns);
  });
}

void fake_runner::run_backward(index_range chunk, micro_batch_index g, std::uint64_t from_right) {
  work(some(1ms, 30ms), [this, chunk, g, from_right]() mutable {
    for (auto b = chunk.end; b-- > chunk.begin;) {
      auto weights = state_.blocks[b];
      own_[b].sum += gradient(from_right, inputs_[{b, g}], weights);
      own_[b].counts += counted_once(g);
      from_right = backward(from_right, weights);
    }
    if (chunk.begin > 0)
      world_.send(place_of(holder_here(chunk.begin - 1)),
                  {frame::kind::gradient, plan_.view, state_.applied.next(), chunk.begin - 1, g,
                   from_right, 0},
                  0ns);
    if (++backward_done_ == micro_batches().size() * blocks().chunks().size()) own_sums_done();
  });
}

void fake_runner::own_sums_done() {
  for (auto& [block, sum] : own_) {
    partials_[block][at_.replica] = sum;
    for (auto holder : core::holders_of(plan_.shape, block))
      if (holder != self_.node)
        world_.send(place_of(holder),
                    {frame::kind::partial, plan_.view, state_.applied.next(), block, at_.replica,
                     sum.sum, sum.counts},
                    0ns);
  }
  totals_when_all_there();
}

void fake_runner::totals_when_all_there() {
  if (reported_ || backward_done_ != micro_batches().size() * blocks().chunks().size()) return;
  for (auto b : blocks().all())
    if (partials_[b].size() != plan_.shape.replicas.size()) return;
  reported_ = true;
  work(some(100us, 2ms), [this] {
    for (auto& [block, parts] : partials_) {
      std::uint64_t counts = 0;
      for (auto& [from, part] : parts) {
        totals_[block] += part.sum;
        counts += part.counts;
      }
      world_.check.summed(self_.node, state_.applied.next(), block, counts);
    }
    state_.has_sums = true;
    report();
  });
}

void fake_runner::report() {
  core::stage_report made;
  made.view = plan_.view;
  made.step = state_.applied.next();
  made.at = at_;
  for (auto b : blocks().all())
    made.blocks.push_back(
      {b, state_.blocks[b], closing() ? 0 : squared_norm_of(totals_[b]), 900, 2000});
  if (auto last = blocks().chunks().back(); is_last(last)) {
    for (auto [g, loss] : losses_) made.losses.push_back({g, loss});
    if (core::validates_after(world_.job, state_.applied.value)) {
      auto share = core::validation_share(world_.job.validation.micro_batches, at_.replica,
                                          static_cast<std::uint32_t>(plan_.shape.replicas.size()));
      for (auto g = share.begin; g < share.end; ++g)
        made.validation_losses.push_back({g, validation_loss_of(g, state_.blocks[last.end - 1])});
    }
  }
  // Any figure at all: no promise hangs on it, whatever plans it leads to.
  made.links.bytes_per_s = mix(self_.node.value, made.step.value) >> (self_.node.value % 64);
  made.links.one_way_ns = mix(made.step.value, self_.node.value) >> (made.step.value % 64);
  world_.tell(core::runner_reported{std::move(made)});
}

void fake_runner::decide(core::verdict what) {
  if (phase_ != phase::training || what.view != plan_.view) return;
  if (what.step != state_.applied.next())
    return world_.check.fail("node " + std::to_string(self_.node.value) +
                             " gets a verdict on step " + std::to_string(what.step.value) +
                             " in round " + std::to_string(state_.applied.value + 1));
  if (!closing() && !state_.has_sums)
    return world_.check.fail("node " + std::to_string(self_.node.value) +
                             " gets a verdict on step " + std::to_string(what.step.value) +
                             " before its sums are complete");
  work(some(10us, 2ms), [this, what] {
    if (what.what == core::decision::apply || what.what == core::decision::skip) apply(what);
    if (what.last_of_view) return halt();
    start_round();
  });
}

void fake_runner::apply(const core::verdict& word) {
  state_.applied = word.step;
  state_.has_sums = false;
  state_.last_verdict = word;
  for (auto& [block, weights] : state_.blocks) {
    weights = sim::apply(weights, totals_[block], word);
    world_.check.has_weights(self_.node, state_.applied, block, weights);
  }
  if (phase_ == phase::training && core::checkpoints_after(world_.job, state_.applied.value))
    snapshot();
}

void fake_runner::snapshot() {
  core::runner_snapshot made{plan_.view, state_.applied, {}};
  auto replicas = static_cast<std::uint32_t>(plan_.shape.replicas.size());
  for (auto b : blocks().all())
    if (core::writer_of(b, replicas) == at_.replica)
      made.blocks.push_back({b, state_.blocks[b], {}});
  if (!made.blocks.empty()) world_.tell(std::move(made));
}

// -- frames ---------------------------------------------------------------------------------------

void fake_runner::arrived(int from, const frame& f) {
  if (f.what == frame::kind::request) return serve(from, f);
  if (f.view != plan_.view) return;
  if (f.what == frame::kind::state || f.what == frame::kind::refusal) {
    if (phase_ != phase::preparing) return;
    return f.what == frame::kind::state ? take_state(f) : next_source(f.block);
  }
  if (phase_ == phase::held || phase_ == phase::failed) return;
  if (phase_ != phase::training || f.step > state_.applied.next()) {
    early_.emplace_back(from, f);
    return;
  }
  if (f.step != state_.applied.next()) return;
  switch (f.what) {
    case frame::kind::activation:
      return run_forward(chunk_of(f.block), f.part, f.value);
    case frame::kind::gradient:
      return run_backward(chunk_of(f.block), f.part, f.value);
    case frame::kind::partial:
      partials_[f.block][f.part] = {f.value, f.counts};
      return totals_when_all_there();
    default:
      return;
  }
}

void fake_runner::broken(int peer) {
  auto node = node_at(peer);
  if (!node || node == self_.node || phase_ == phase::held || phase_ == phase::failed) return;
  core::place at;
  bool serves_only = !core::find_place(plan_.shape, node, at);
  if (serves_only && phase_ != phase::preparing) return;  // we have what we wanted of it
  fail(errc::unreachable, "the connection to node " + std::to_string(node.value) + " ended", node);
}

void fake_runner::fail(errc code, std::string why, node_id suspect, step_id damaged) {
  ++epoch_;
  phase_ = phase::failed;
  work(some(10us, 1ms), [this, view = plan_.view, code, why = std::move(why), suspect, damaged] {
    world_.tell(core::runner_failed{view, {code, why}, suspect, damaged});
  });
}

}  // namespace shoal::sim
