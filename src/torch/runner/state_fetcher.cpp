#include "torch/runner/state_fetcher.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <ATen/ATen.h>

#include "base/assert.hpp"
#include "torch/runner/state_server.hpp"

namespace shoal::engine {

using core::frame_kind;

namespace {

std::string name_of(const chain& model, block_index block) {
  return "block " + std::to_string(block) + " (\"" + model[block]->name() + "\")";
}

std::string name_of(node_id node) { return "node " + std::to_string(node.value); }

/// With a source that sends no whole tensor: long enough for a large one, short enough for a second
/// source. A dead one is noticed sooner, by the plane or the supervisor.
core::nanoseconds patience(const core::job_options& job) { return job.timeouts.prepare / 2; }

/// A tensor over memory that someone else owns.
at::Tensor tensor_over(const core::state_tensor& t) {
  auto owner = t.bytes.owner;
  return at::from_blob(
    t.bytes.data, t.shape, [owner](void*) {}, at::TensorOptions(type_of(t.scalar)));
}

}  // namespace

state_fetcher::state_fetcher(const options& with, const core::prepare& plan,
                             const core::block_runs& wanted)
  : with_(with), view_(plan.view), step_(plan.step), checkpoint_(plan.checkpoint) {
  for (auto b : wanted.all()) {
    auto missing = std::ranges::find(plan.missing, b, &core::block_source::block);
    if (missing == plan.missing.end() && with_.blocks.has(b)) continue;
    with_.blocks.drop(b);  // the supervisor does not trust ours
    auto& f = open_[b];
    if (missing != plan.missing.end())
      f.sources.assign(missing->holders.rbegin(), missing->holders.rend());
  }
}

void state_fetcher::ask(core::time_point now) {
  for (auto& [block, f] : open_)
    if (!f.sources.empty()) turn_to_next(block, f, now);
}

void state_fetcher::turn_to_next(block_index block, fetch& f, core::time_point now) {
  with_.in.forget_state(block);
  f.source = f.sources.back();
  f.sources.pop_back();
  f.block = std::make_unique<block_runtime>(with_.job, *with_.model[block], block);
  f.trouble.reset();
  f.has_digest = false;
  f.heard = now;
  frame_name name{step_, frame_kind::state, block, 0, 0};
  std::vector<expected_frame> frames{{.name = name,
                                      .from = f.source,
                                      .scalar = core::scalar_kind::u8,
                                      .shape = {sizeof(f.digest)},
                                      .may_be_absent = true}};
  for (auto& t : f.block->state_tensors()) {
    ++name.part;
    frames.push_back({.name = name,
                      .from = f.source,
                      .scalar = t.scalar,
                      .shape = t.shape,
                      .into = tensor_over(t)});
  }
  f.awaited.clear();
  for (auto& frame : frames) f.awaited.push_back(frame.name);
  with_.in.expect(std::move(frames));
  with_.plane.send(f.source,
                   {.view = view_,
                    .step = step_,
                    .kind = frame_kind::state_request,
                    .block = block,
                    .micro_batch = 0,
                    .part = 0,
                    .scalar = core::scalar_kind::u8,
                    .shape = {0},
                    .bytes = 0},
                   {});
}

result<bool> state_fetcher::work(core::time_point now) {
  for (auto& [block, f] : open_) {
    if (!f.source) {
      TRY_VOID(make_without_peers(block));
      open_.erase(block);
      return true;
    }
    TRY(bool did, take_in(block, f, now));
    if (did) return true;
    auto silent = silent_since(f.source);
    if (!f.trouble && silent && now - *silent >= patience(with_.job))
      f.trouble = error{errc::timeout, name_of(f.source) + " has sent nothing of " +
                                         name_of(with_.model, block) + " for " +
                                         shoal::text_of(patience(with_.job))};
    if (!f.trouble) continue;
    if (f.sources.empty()) {
      TRY_VOID(fail(*f.trouble, f.source));
    }
    turn_to_next(block, f, now);
    return true;
  }
  return false;
}

/// Takes what has arrived of a block, and the block once it is whole.
result<bool> state_fetcher::take_in(block_index block, fetch& f, core::time_point now) {
  auto count = std::erase_if(f.awaited, [&](auto& name) {
    auto t = with_.in.take(name);
    if (!t.defined()) return false;
    if (name.part != 0) return true;
    f.has_digest = t.numel() != 0;
    if (f.has_digest)
      f.digest = digest_of(t);
    else
      f.trouble =
        error{errc::refused, name_of(f.source) + " does not hold " + name_of(with_.model, block) +
                               " at step " + std::to_string(step_.value)};
    return true;
  });
  if (count != 0) f.heard = now;
  if (f.trouble || !f.awaited.empty()) return count != 0 && !f.trouble;
  if (f.block->digest() != f.digest) {
    f.trouble = error{errc::damaged, name_of(with_.model, block) + " from " + name_of(f.source) +
                                       " is not what that node says it is: its digest is wrong"};
    return false;
  }
  with_.blocks.add(std::move(f.block));
  open_.erase(block);
  return true;
}

result<void> state_fetcher::make_without_peers(block_index block) {
  auto made = std::make_unique<block_runtime>(with_.job, *with_.model[block], block);
  if (step_ != checkpoint_)
    return fail({errc::internal, name_of(with_.model, block) + " has no source at step " +
                                   std::to_string(step_.value) + ", and is not held here"},
                {});
  if (step_.value == 0) {
    made->initialize();
  } else {
    auto loaded = with_.store.load(checkpoint_, block);
    if (!loaded) return fail(std::move(loaded).error(), {}, checkpoint_);
    if (auto fits = made->load_state(*loaded); !fits) return fail(fits.error(), {}, checkpoint_);
    if (made->digest() != loaded->digest)
      return fail({errc::damaged, name_of(with_.model, block) + " in checkpoint " +
                                    std::to_string(checkpoint_.value) +
                                    " has another digest than its manifest says"},
                  {}, checkpoint_);
  }
  with_.blocks.add(std::move(made));
  return {};
}

result<void> state_fetcher::fail(error why, node_id suspect, step_id damaged_checkpoint) {
  failure_ = {why, suspect, damaged_checkpoint};
  return why;
}

void state_fetcher::lost(node_id peer, const error& why) {
  for (auto& [block, f] : open_) {
    std::erase(f.sources, peer);
    if (f.source == peer && !f.trouble) f.trouble = why;
  }
}

/// A source sends its blocks one after the other: while any of them moves, none is late.
std::optional<core::time_point> state_fetcher::silent_since(node_id source) const {
  std::optional<core::time_point> newest;
  for (auto& [block, f] : open_)
    if (f.source == source) newest = std::max(newest.value_or(f.heard), f.heard);
  return newest;
}

std::optional<core::time_point> state_fetcher::deadline() const {
  std::optional<core::time_point> next;
  for (auto& [block, f] : open_) {
    if (!f.source) continue;
    auto until = *silent_since(f.source) + patience(with_.job);
    next = std::min(next.value_or(until), until);
  }
  return next;
}

}  // namespace shoal::engine
