#include "torch/runner/round.hpp"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include "base/assert.hpp"
#include "torch/numbers.hpp"

namespace shoal::engine {

using core::action_kind;
using core::frame_kind;
using clock = std::chrono::steady_clock;

namespace {

std::uint32_t mean_us(std::chrono::nanoseconds sum, std::uint32_t count) {
  if (count == 0) return 0;
  return static_cast<std::uint32_t>(
    std::chrono::duration_cast<std::chrono::microseconds>(sum).count() / count);
}

}  // namespace

round::round(const stage_facts& facts, const batches& data, holdings& blocks, inbox& in,
             core::tensor_plane& plane, step_id number)
  : facts_(facts),
    data_(data),
    held_(blocks),
    inbox_(in),
    plane_(plane),
    number_(number),
    reducer_(facts, blocks, in, plane, number),
    orders_(facts.orders_of(number)),
    done_(orders_.actions.size(), false) {}

bool round::complete() const {
  return actions_done_ == orders_.actions.size() &&
         (facts_.training(number_).size() == 0 || reducer_.complete());
}

bool round::work() {
  // In the middle of an action others wait for its output, but for that of the first chunk's
  // backward pass, which nobody waits for.
  bool in_haste = now_ && !(part().first() && now_->what.kind == action_kind::backward);
  if (!in_haste && reducer_.work()) return true;
  if (!now_ && !begin_action()) return false;
  run_block();
  return true;
}

// -- actions --------------------------------------------------------------------------------------

/// Starts the next action of the schedule if its inputs are here, or what may run before it.
bool round::begin_action() {
  while (head_ < done_.size() && done_[head_]) ++head_;
  if (head_ == done_.size()) return false;
  if (!orders_.opportunistic || gradient_is_here(orders_.actions[head_])) return begin(head_);
  // A recompute could run already, but its backward pass would wait: a forward pass is better.
  return begin_forward_ahead() || begin(head_);
}

/// Whether nothing holds up the backward pass that the action is part of, if it is one.
bool round::gradient_is_here(core::stage_action what) const {
  if (what.kind == action_kind::validate || what.kind == action_kind::forward) return true;
  auto& c = facts_.chunks()[what.chunk];
  return c.last() ||
         has_boundary(frame_kind::gradient, c.blocks.end, what.micro_batch, c.outputs, true);
}

bool round::begin_forward_ahead() {
  if (in_flight_ >= orders_.live_max) return false;
  auto open = [&](std::size_t i) {
    return !done_[i] && orders_.actions[i].kind == action_kind::forward;
  };
  forward_ = std::max(forward_, head_);
  while (forward_ < done_.size() && !open(forward_)) ++forward_;
  // Inputs come in this order: if the first is not here, none is.
  return forward_ < done_.size() && begin(forward_);
}

bool round::begin(std::size_t number) {
  auto what = orders_.actions[number];
  auto g = what.micro_batch;
  auto& c = facts_.chunks()[what.chunk];
  auto block = what.kind == action_kind::backward ? c.blocks.end - 1 : c.blocks.begin;
  now_ = running{number, what, block, {}, {}};
  bool here = true;
  switch (what.kind) {
    case action_kind::validate:
    case action_kind::forward: {
      auto kind =
        what.kind == action_kind::validate ? frame_kind::validation : frame_kind::activation;
      here = c.first() || take_boundary(kind, c.blocks.begin, g, c.inputs, false);
      if (here && (c.first() || c.last()))
        now_->data =
          what.kind == action_kind::validate ? data_.validation(g) : data_.training(number_, g);
      if (here && what.kind == action_kind::forward) ++in_flight_;
      break;
    }
    case action_kind::recompute:
      now_->boundary = std::move(stash_of(what).inputs);
      now_->data = std::move(stash_of(what).data);
      break;
    case action_kind::backward:
      here = c.last() || take_boundary(frame_kind::gradient, c.blocks.end, g, c.outputs, true);
      break;
  }
  if (!here) now_.reset();
  return here;
}

bool round::has_boundary(frame_kind kind, block_index block, micro_batch_index g,
                         const std::vector<tensor_spec>& specs, bool only_floating) const {
  for (std::uint32_t i = 0; i < specs.size(); ++i)
    if ((specs[i].floating || !only_floating) && !inbox_.has({number_, kind, block, g, i}))
      return false;
  return true;
}

/// Takes the frames of a boundary out of the inbox once all are here. Where only floating tensors
/// travel, the others' places stay undefined.
bool round::take_boundary(frame_kind kind, block_index block, micro_batch_index g,
                          const std::vector<tensor_spec>& specs, bool only_floating) {
  if (!has_boundary(kind, block, g, specs, only_floating)) return false;
  now_->boundary.resize(specs.size());
  for (std::uint32_t i = 0; i < specs.size(); ++i)
    if (specs[i].floating || !only_floating)
      now_->boundary[i] = inbox_.take({number_, kind, block, g, i});
  return true;
}

void round::run_block() {
  switch (now_->what.kind) {
    case action_kind::validate:
      validate_block();
      break;
    case action_kind::forward:
    case action_kind::recompute:
      forward_block();
      break;
    case action_kind::backward:
      backward_block();
      break;
  }
}

/// As the model's author was promised: the first and the last block get data, the others none.
const micro_batch* round::data_for(block_index block) const {
  bool gets = block == 0 || (part().last() && block + 1 == part().blocks.end);
  return gets ? &*now_->data : nullptr;
}

void round::validate_block() {
  auto b = now_->block;
  now_->boundary = held_.at(b).validate(std::move(now_->boundary), data_for(b));
  if (++now_->block != part().blocks.end) return;
  auto g = now_->what.micro_batch;
  if (part().last())
    validation_losses_.push_back({g, take_loss()});
  else
    send_boundary(part().next, frame_kind::validation, part().blocks.end, g);
  end_action();
}

bool round::keeps_records() const {
  return !part().recomputes || now_->what.kind == action_kind::recompute;
}

void round::forward_block() {
  auto b = now_->block;
  auto g = now_->what.micro_batch;
  bool first_time = now_->what.kind == action_kind::forward;
  if (b == part().blocks.begin && !keeps_records())
    stashes_[key_of(now_->what)] = {.inputs = now_->boundary, .data = now_->data, .records = {}};
  auto began = clock::now();
  auto record = held_.at(b).forward(std::move(now_->boundary), data_for(b), number_, g);
  if (first_time) {
    auto& t = timings_[b];
    t.forward += clock::now() - began;
    ++t.forward_count;
    check_finite(record.outputs, g, b);
  }
  now_->boundary = record.outputs;
  if (keeps_records()) stashes_[key_of(now_->what)].records.push_back(std::move(record));
  if (++now_->block != part().blocks.end) return;
  if (first_time) end_forward();
  end_action();
}

void round::end_forward() {
  auto g = now_->what.micro_batch;
  if (part().last())
    losses_.push_back({g, take_loss()});
  else
    send_boundary(part().next, frame_kind::activation, part().blocks.end, g);
}

void round::backward_block() {
  auto b = now_->block;
  auto g = now_->what.micro_batch;
  auto& kept = stash_of(now_->what).records;
  auto record = std::move(kept.back());
  kept.pop_back();
  auto began = clock::now();
  now_->boundary = held_.at(b).backward(std::move(record), std::move(now_->boundary),
                                        core::actions_of(facts_.sums(), g));
  auto& t = timings_[b];
  t.backward += clock::now() - began;
  ++t.backward_count;
  if (g + 1 == facts_.training(number_).end) reducer_.start(b);
  if (b != part().blocks.begin) {
    --now_->block;
    return;
  }
  stashes_.erase(key_of(now_->what));
  --in_flight_;
  if (!part().first()) send_boundary(part().previous, frame_kind::gradient, b, g);
  end_action();
}

void round::end_action() {
  done_[now_->number] = true;
  ++actions_done_;
  now_.reset();
}

/// Sends what lies at the boundary; undefined tensors (gradients of integers) do not travel.
void round::send_boundary(node_id to, frame_kind kind, block_index block, micro_batch_index g) {
  for (std::uint32_t i = 0; i < now_->boundary.size(); ++i) {
    auto& t = now_->boundary[i];
    if (!t.defined()) continue;
    frame_name name{number_, kind, block, g, i};
    plane_.send(to, header_of(facts_.view(), name, t), payload_of(t));
  }
}

double round::take_loss() { return static_cast<double>(now_->boundary[0].item<float>()); }

void round::check_finite(const tensors& outputs, micro_batch_index g, block_index block) {
  core::not_finite here{g, block};
  if (offence_ && *offence_ < here) return;
  for (auto& t : outputs)
    if (t.is_floating_point() &&
        !all_finite({t.const_data_ptr<float>(), static_cast<std::size_t>(t.numel())}))
      offence_ = here;
}

std::string round::where() const {
  auto text = "step " + std::to_string(number_.value);
  if (now_)
    text += ", micro-batch " + std::to_string(now_->what.micro_batch) + ", block \"" +
            held_.at(now_->block).description().name() + "\"";
  return text;
}

// -- report ---------------------------------------------------------------------------------------

core::stage_report round::report() const {
  SHOAL_ASSERT(complete());
  core::stage_report r;
  r.view = facts_.view();
  r.step = number_;
  r.at = facts_.at();
  bool trained = facts_.training(number_).size() != 0;
  for (auto b : facts_.blocks().all()) {
    core::block_report block{.block = b, .digest = held_.digest(b)};
    if (trained) {
      auto& t = timings_.at(b);
      block.squared_norm = reducer_.squared_norm(b);
      block.forward_us = mean_us(t.forward, t.forward_count);
      block.backward_us = mean_us(t.backward, t.backward_count);
    }
    r.blocks.push_back(block);
  }
  r.losses = losses_;
  r.validation_losses = validation_losses_;
  r.offence = offence_;
  r.links = core::median_of(plane_.links());
  return r;
}

}  // namespace shoal::engine
