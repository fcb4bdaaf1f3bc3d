#include "torch/runner/reducer.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <ATen/ATen.h>

#include "base/assert.hpp"

namespace shoal::engine {

using core::frame_kind;

reducer::reducer(const stage_facts& facts, holdings& blocks, inbox& in, core::tensor_plane& plane,
                 step_id round)
  : facts_(facts), held_(blocks), inbox_(in), plane_(plane), round_(round) {
  for (auto b : facts.blocks().all()) blocks_[b];
  for (auto& group : facts.tied().groups) {
    if (std::ranges::none_of(group, [&](auto& t) { return here(t); })) continue;
    if (facts.element_count(group[0]) == 0) continue;
    ties_.push_back({&group, std::vector<at::Tensor>(group.size())});
    std::set<block_index> mine;
    for (auto& t : group)
      if (here(t)) mine.insert(t.block);
    for (auto b : mine) ++blocks_[b].open_ties;
  }
}

void reducer::start(block_index block) {
  auto& sum = blocks_.at(block);
  SHOAL_ASSERT(sum.at == phase::computing);
  fruitless_ = false;
  sum.at = phase::exchanging;
  auto& runtime = held_.at(block);
  if (facts_.replica_count() == 1) {
    SHOAL_ASSERT(facts_.sums().slots.size() == 1);
    sum.total = runtime.slot(facts_.sums().slots[0]);
    sum.shard_done = true;
    return;
  }
  sum.total = at::empty({facts_.element_count(block)}, at::kFloat);
  sum.pieces.resize(facts_.piece_count());
  expect_totals(block, sum);
  send_partials(block, sum);
}

void reducer::send(node_id to, const frame_name& name, const at::Tensor& t) {
  plane_.send(to, header_of(facts_.view(), name, t), payload_of(t));
}

/// Others add mine to theirs while mine stay as they are: nobody writes to a slot any more.
void reducer::send_partials(block_index block, block_sum& sum) {
  auto mine = facts_.pieces(facts_.at().replica);
  for (std::uint32_t i = 0; i < mine.size(); ++i) {
    auto& slot = held_.at(block).slot(facts_.sums().slots[i]);
    for (replica_index r = 0; r < facts_.replica_count(); ++r) {
      auto shard = facts_.shard_of(slot.numel(), r);
      auto part = slot.narrow(0, shard.begin, shard.size);
      if (r == facts_.at().replica)
        sum.pieces[mine.begin + i] = part;
      else if (shard.size != 0)
        send(facts_.holder(r, block), {round_, frame_kind::partial, block, mine.begin + i, r},
             part);
    }
  }
}

void reducer::expect_totals(block_index block, block_sum& sum) {
  std::vector<expected_frame> frames;
  for (replica_index r = 0; r < facts_.replica_count(); ++r) {
    auto shard = facts_.shard_of(sum.total.numel(), r);
    if (r == facts_.at().replica || shard.size == 0) continue;
    sum.awaited.push_back(r);
    frames.push_back({.name = {round_, frame_kind::total, block, 0, r},
                      .from = facts_.holder(r, block),
                      .shape = {shard.size},
                      .into = sum.total.narrow(0, shard.begin, shard.size)});
  }
  inbox_.expect(std::move(frames));
}

bool reducer::work() {
  auto news = inbox_.news();
  if (fruitless_ && looked_at_ == news) return false;
  for (auto& [block, sum] : blocks_) {
    if (sum.at == phase::exchanging && exchange(block, sum)) return true;
    if (sum.at == phase::summed && sum.open_ties == 0) {
      sum.squared_norm = held_.at(block).squared_norm(facts_.tied().counts[block]);
      sum.at = phase::done;
      ++done_count_;
      return true;
    }
  }
  if (add_ties()) return true;
  fruitless_ = true;
  looked_at_ = news;
  return false;
}

// -- exchange with the other replicas -------------------------------------------------------------

bool reducer::exchange(block_index block, block_sum& sum) {
  if (!sum.shard_done && add_next(block, sum)) return true;
  bool taken = take_totals(block, sum);
  if (!sum.shard_done || !sum.awaited.empty()) return taken;
  set_summed(block, sum);
  return true;
}

/// One addition of the tree, or the end of them. Strictly in order: the order is the promise.
bool reducer::add_next(block_index block, block_sum& sum) {
  if (facts_.shard_of(sum.total.numel(), facts_.at().replica).size == 0) {
    sum.shard_done = true;
    return true;
  }
  auto& additions = facts_.additions();
  if (sum.added == additions.size()) {
    if (!piece(block, sum, 0).defined()) return false;
    finish_shard(block, sum);
    return true;
  }
  auto next = additions[sum.added];
  auto& into = piece(block, sum, next.into);
  auto& from = piece(block, sum, next.from);
  if (!into.defined() || !from.defined()) return false;
  into.add_(from);
  sum.pieces[next.from].reset();
  ++sum.added;
  return true;
}

const at::Tensor& reducer::piece(block_index block, block_sum& sum, std::uint32_t number) {
  auto& t = sum.pieces[number];
  if (!t.defined())
    t = inbox_.take({round_, frame_kind::partial, block, number, facts_.at().replica});
  return t;
}

void reducer::finish_shard(block_index block, block_sum& sum) {
  auto mine = facts_.at().replica;
  auto shard = facts_.shard_of(sum.total.numel(), mine);
  auto part = sum.total.narrow(0, shard.begin, shard.size);
  part.copy_(sum.pieces[0]);
  sum.pieces.clear();
  sum.shard_done = true;
  // Adding up ties writes to the total, maybe before the plane has read it.
  auto sent = sum.open_ties == 0 ? part : part.clone();
  for (replica_index r = 0; r < facts_.replica_count(); ++r)
    if (r != mine) send(facts_.holder(r, block), {round_, frame_kind::total, block, 0, mine}, sent);
}

bool reducer::take_totals(block_index block, block_sum& sum) {
  auto count = std::erase_if(sum.awaited, [&](replica_index r) {
    return inbox_.take({round_, frame_kind::total, block, 0, r}).defined();
  });
  return count != 0;
}

void reducer::set_summed(block_index block, block_sum& sum) {
  held_.at(block).set_total(std::move(sum.total));
  sum.total.reset();
  sum.at = phase::summed;
  for (auto& tie : ties_)
    for (std::size_t i = 0; i < tie.members->size(); ++i) {
      auto& t = (*tie.members)[i];
      if (t.block != block) continue;
      tie.parts[i] = held_.at(block).total_of(t.parameter);
      send_tied(tie, t);
    }
}

// -- tied parameters, inside the replica ----------------------------------------------------------

/// A copy goes out: the total is soon overwritten by the sum.
void reducer::send_tied(const tie_sum& tie, const tie_member& mine) {
  std::set<node_id> others;
  for (auto& t : *tie.members)
    if (!here(t)) others.insert(facts_.holder(facts_.at().replica, t.block));
  if (others.empty()) return;
  auto copy = held_.at(mine.block).total_of(mine.parameter).clone();
  for (auto node : others)
    send(node, {round_, frame_kind::tied, mine.block, 0, mine.parameter}, copy);
}

bool reducer::add_ties() {
  return std::ranges::any_of(ties_, [&](auto& tie) { return !tie.done && add_tie(tie); });
}

bool reducer::add_tie(tie_sum& tie) {
  auto& members = *tie.members;
  for (std::size_t i = 0; i < members.size(); ++i)
    if (!here(members[i]) && !tie.parts[i].defined())
      tie.parts[i] =
        inbox_.take({round_, frame_kind::tied, members[i].block, 0, members[i].parameter});
  if (!std::ranges::all_of(tie.parts, [](auto& t) { return t.defined(); })) return false;

  auto sum = tie.parts[0].clone();
  for (std::size_t i = 1; i < members.size(); ++i) sum.add_(tie.parts[i]);
  std::set<block_index> mine;
  for (std::size_t i = 0; i < members.size(); ++i)
    if (here(members[i])) {
      tie.parts[i].copy_(sum);
      mine.insert(members[i].block);
    }
  for (auto b : mine) --blocks_.at(b).open_ties;
  tie.parts.clear();
  tie.done = true;
  return true;
}

}  // namespace shoal::engine
