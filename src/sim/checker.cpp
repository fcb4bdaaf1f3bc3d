#include "sim/checker.hpp"

#include <algorithm>

namespace shoal::sim {

namespace {

std::string text(auto id) { return std::to_string(id.value); }

}  // namespace

void checker::fail(std::string what) {
  if (violation_.empty()) violation_ = std::move(what);
}

void checker::decided(const core::verdict& word) {
  auto round = "round " + text(word.step) + " of view " + text(word.view);
  if (word.step.value == 0 || word.step.value >= reference_.verdicts.size())
    return fail(round + " is decided, and does not exist");
  auto right = reference_.verdicts[word.step.value];
  right.view = word.view;
  right.last_of_view = word.last_of_view;
  if (word != right) fail(round + " is decided otherwise than undisturbed");
  if (word.view < highest_committed_ && ++late_decisions_[word.view] > 1)
    fail(round + " is the second that is decided after view " + text(highest_committed_) +
         " was committed: two views train at once");
}

void checker::has_weights(node_id node, step_id step, block_index block, std::uint64_t weights) {
  if (step.value >= reference_.weights.size() || block >= block_count_)
    return fail("node " + text(node) + " is at step " + text(step) + ", which does not exist");
  if (reference_.weights[step.value][block] != weights)
    fail("node " + text(node) + " has wrong weights of block " + std::to_string(block) +
         " at step " + text(step));
}

void checker::summed(node_id node, step_id step, block_index block, std::uint64_t counts) {
  if (counts != all_counted_once(job_.training.micro_batches))
    fail("node " + text(node) + ", step " + text(step) + ", block " + std::to_string(block) +
         ": not every micro-batch is summed exactly once");
}

void checker::committed(view_id view, step_id step, const core::layout& shape,
                        const std::map<node_id, holding>& members) {
  auto [entry, fresh] = committed_.emplace(view, shape);
  if (!fresh) return fail("view " + text(view) + " is committed twice");
  if (view <= highest_committed_)
    return fail("view " + text(view) + " is committed after view " + text(highest_committed_));
  highest_committed_ = view;
  for (auto& chain : shape.replicas)
    for (auto& s : chain.stages) {
      auto found = members.find(s.node);
      if (found == members.end()) continue;  // died this moment
      auto where = "view " + text(view) + " is committed, but node " + text(s.node);
      if (found->second.applied != step)
        fail(where + " is at step " + text(found->second.applied) + ", not " + text(step));
      for (auto b : s.blocks.all()) {
        auto held = found->second.blocks.find(b);
        if (held == found->second.blocks.end())
          fail(where + " lacks block " + std::to_string(b));
        else
          has_weights(s.node, step, b, held->second);
      }
    }
}

void checker::meets(view_id view, step_id meet, const std::vector<holding>& taking_part) {
  step_id newest;
  for (auto& h : taking_part)
    if (!h.blocks.empty()) newest = std::max(newest, h.applied);
  bool known = std::ranges::any_of(
    taking_part, [&](auto& h) { return h.last_verdict && h.last_verdict->step == newest; });
  for (block_index b = 0; b < block_count_; ++b)
    if (std::ranges::none_of(taking_part, [&](auto& h) {
          bool there = h.applied == newest || (known && h.has_sums && h.applied.next() == newest);
          return there && h.blocks.contains(b);
        }))
      return;
  if (meet < newest)
    fail("view " + text(view) + " starts from step " + text(meet) +
         ", though every block has a holder at step " + text(newest));
}

void checker::heard(node_id node, view_id heard, view_id trains) {
  if (trains && trains < heard)
    fail("node " + text(node) + " trains view " + text(trains) + " although it has heard of view " +
         text(heard));
}

void checker::saved(step_id step, const std::vector<core::checkpoint_part>& parts) {
  if (parts.size() != block_count_) return fail("checkpoint " + text(step) + " is not whole");
  for (auto& part : parts) has_weights({}, step, part.block, part.digest);
}

void checker::reported(const core::decided& word) {
  auto before = word.what.step.value - 1;
  if (before >= reference_.weights.size()) return fail("a step is reported that does not exist");
  if (word.digest_before != core::model_digest(reference_.weights[before]))
    fail("the digest reported with step " + text(word.what.step) + " is wrong");
}

}  // namespace shoal::sim
