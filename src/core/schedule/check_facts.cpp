// Rules 3 (blocks), 14, 15 and 16: what is known beside the lists.
#include <algorithm>
#include <numeric>

#include "core/schedule/breach.hpp"
#include "core/schedule/checks.hpp"
#include "core/schedule/text.hpp"

namespace shoal::core::checks {

namespace {

result<void> check_blocks(const subject& s) {
  std::uint32_t next = 0;
  for (virtual_stage stage = 0; stage < s.limits.blocks.size(); ++stage) {
    auto range = s.limits.blocks[stage];
    auto name = "stage " + std::to_string(stage) + " has blocks " + std::to_string(range.begin) +
                " to " + std::to_string(range.end);
    if (range.begin != next)
      return breach(rule::placement, name + "; it must begin with block " + std::to_string(next));
    if (range.end <= range.begin)
      return breach(rule::placement, name + "; every stage needs a block");
    next = range.end;
  }
  if (!s.limits.blocks.empty() && next != s.limits.block_count)
    return breach(rule::placement, "the stages end with block " + std::to_string(next) + " of " +
                                     std::to_string(s.limits.block_count) +
                                     "; all blocks must be on a stage");
  return {};
}

result<void> check_samples(const subject& s) {
  if (s.limits.samples.empty()) return {};
  auto sum = std::accumulate(s.limits.samples.begin(), s.limits.samples.end(), std::uint64_t{0});
  if (sum == s.limits.sample_count) return {};
  return breach(rule::denominators, "the micro-batches have " + std::to_string(sum) +
                                      " samples, but the loss is divided by " +
                                      std::to_string(s.limits.sample_count) + "; divide by " +
                                      std::to_string(sum));
}

result<void> check_hashes(const subject& s, std::uint64_t hash) {
  for (rank_index r = 0; r < s.limits.hashes.size(); ++r)
    if (s.limits.hashes[r] != hash)
      return breach(rule::hashes, "rank " + std::to_string(r) + " has the plan " +
                                    std::to_string(s.limits.hashes[r]) + ", this is " +
                                    std::to_string(hash) + "; send it this one");
  return {};
}

/// Warnings of one kind, the first few in words.
class warning_list {
public:
  void add(const std::string& text) {
    if (++count_ <= 4) texts_.push_back(name_of(rule::warnings) + ", " + text + ".");
  }
  void move_to(std::vector<std::string>& all) {
    if (count_ > 4)
      texts_.push_back(name_of(rule::warnings) + ": " + std::to_string(count_ - 4) +
                       " more of this kind.");
    all.insert(all.end(), texts_.begin(), texts_.end());
  }

private:
  std::size_t count_ = 0;
  std::vector<std::string> texts_;
};

/// How many cells compute before the one that uses what cell i receives.
void warn_of_early_receives(const subject& s, std::vector<std::string>& all) {
  warning_list list;
  for (rank_index r = 0; r < s.plan.rank_count(); ++r) {
    auto& order = s.plan.ranks[r];
    std::vector<std::uint32_t> computed(order.size() + 1, 0);
    for (std::size_t i = 0; i < order.size(); ++i)
      computed[i + 1] = computed[i] + is_compute(order[i].what);
    for (std::size_t i = 0; i < order.size(); ++i) {
      auto& c = order[i];
      if (!is_receive(c.what)) continue;
      auto use = c.what == operation::receive_activation
                   ? s.index.find(operation::forward, c.stage, c.micro_batch)
                   : s.index.find_backward(c.stage, c.micro_batch);
      auto ahead = computed[s.index.place_of(use)] - computed[i];
      if (ahead >= s.limits.receive_ahead_max)
        list.add(place_of(r, i, c) + ": it is received " + std::to_string(ahead) +
                 " cells before its use");
    }
  }
  list.move_to(all);
}

void warn_of_warm_ups(const subject& s, const std::vector<rank_figures>& figures,
                      std::vector<std::string>& all) {
  bool one_each = s.plan.placement.size() == 1 && s.plan.stage_count() == s.plan.rank_count();
  if (s.limits.hop_time == 0 || s.limits.turn_time == 0 || !one_each) return;
  warning_list list;
  for (virtual_stage stage = 0; stage < s.plan.stage_count(); ++stage) {
    std::uint64_t after = s.plan.stage_count() - 1 - stage;
    auto hidden = (2 * after * s.limits.hop_time + s.limits.turn_time - 1) / s.limits.turn_time;
    auto wanted = std::min<std::uint64_t>(after + hidden, s.plan.micro_batches - 1) + 1;
    auto r = s.plan.placement[0][stage];
    if (figures[r].warm_up < wanted)
      list.add("rank " + std::to_string(r) + " forwards " + std::to_string(figures[r].warm_up) +
               " micro-batches before its first backward pass; " + std::to_string(wanted) +
               " would hide the hops");
  }
  list.move_to(all);
}

}  // namespace

result<void> facts(const subject& s, std::uint64_t hash) {
  TRY_VOID(check_blocks(s));
  TRY_VOID(check_samples(s));
  return check_hashes(s, hash);
}

std::vector<std::string> warnings(const subject& s, const std::vector<rank_figures>& figures) {
  std::vector<std::string> all;
  warning_list idle, bare, kept;
  for (rank_index r = 0; r < s.plan.rank_count(); ++r)
    if (s.plan.ranks[r].empty()) idle.add("rank " + std::to_string(r) + " has nothing to do");
  for (virtual_stage stage = 0; stage < s.limits.memory.size(); ++stage)
    if (s.limits.memory[stage].weights == 0)
      bare.add("stage " + std::to_string(stage) + " has no parameters");
  for (rank_index r = 0; r < s.plan.rank_count(); ++r) {
    std::uint32_t published = 0, dropped = 0;
    for (auto& c : s.plan.ranks[r]) {
      published += c.what == operation::optimize && c.version != none;
      dropped += c.what == operation::drop_version;
    }
    if (published > dropped)
      kept.add("rank " + std::to_string(r) + " keeps " + std::to_string(published - dropped) +
               " old versions of weights at the end");
  }
  idle.move_to(all);
  bare.move_to(all);
  kept.move_to(all);
  warn_of_early_receives(s, all);
  warn_of_warm_ups(s, figures, all);
  return all;
}

}  // namespace shoal::core::checks
