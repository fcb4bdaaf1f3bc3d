#include "core/schedule/validate_plan.hpp"

#include <algorithm>

#include "core/schedule/breach.hpp"
#include "core/schedule/checks.hpp"
#include "core/schedule/plan_hash.hpp"

namespace shoal::core {

namespace checks {

std::vector<virtual_stage> stages_of(const pipeline_plan& plan, rank_index r) {
  std::vector<virtual_stage> held;
  for (virtual_stage s = 0; s < plan.stage_count(); ++s)
    if (std::any_of(plan.placement.begin(), plan.placement.end(),
                    [&](auto& row) { return row[s] == r; }))
      held.push_back(s);
  return held;
}

std::vector<rank_index> ranks_of(const pipeline_plan& plan, virtual_stage s) {
  std::vector<rank_index> holders;
  for (auto& row : plan.placement) holders.push_back(row[s]);
  std::sort(holders.begin(), holders.end());
  holders.erase(std::unique(holders.begin(), holders.end()), holders.end());
  return holders;
}

std::uint32_t share_of(const pipeline_plan& plan, rank_index r, virtual_stage s) {
  std::uint32_t share = 0;
  for (micro_batch_index m = 0; m < plan.micro_batches; ++m) share += plan.rank_of(s, m) == r;
  return share;
}

}  // namespace checks

namespace {

bool is_executable(const pipeline_plan& plan) {
  for (auto& order : plan.ranks)
    for (auto& c : order)
      if (is_send(c.what) || is_receive(c.what)) return true;
  return std::all_of(plan.placement.begin(), plan.placement.end(), [](auto& row) {
    return std::all_of(row.begin(), row.end(), [&](auto r) { return r == row[0]; });
  });
}

/// Limits that do not fit the plan are a mistake of the caller's data, and told as such.
result<void> check_limits(const pipeline_plan& plan, const validation_limits& limits) {
  auto wrong = [](rule which, const std::string& what, std::size_t given, std::size_t wanted) {
    return breach(which, what + " are given for " + std::to_string(given) + "; " +
                           std::to_string(wanted) + " are needed, or none");
  };
  auto fits = [](std::size_t given, std::size_t wanted) { return given == 0 || given == wanted; };
  if (!fits(limits.memory.size(), plan.stage_count()))
    return wrong(rule::memory, "bytes of stages", limits.memory.size(), plan.stage_count());
  if (!fits(limits.budgets.size(), plan.rank_count()))
    return wrong(rule::memory, "budgets of ranks", limits.budgets.size(), plan.rank_count());
  if (!fits(limits.blocks.size(), plan.stage_count()))
    return wrong(rule::placement, "blocks of stages", limits.blocks.size(), plan.stage_count());
  if (!fits(limits.samples.size(), plan.micro_batches))
    return wrong(rule::denominators, "samples of micro-batches", limits.samples.size(),
                 plan.micro_batches);
  if (!fits(limits.hashes.size(), plan.rank_count()))
    return wrong(rule::hashes, "hashes of ranks", limits.hashes.size(), plan.rank_count());
  std::vector<bool> tied(plan.stage_count(), false);
  for (auto& set : limits.ties)
    for (auto s : set) {
      if (s >= plan.stage_count())
        return breach(rule::ties, "stage " + std::to_string(s) + " is tied; the last stage is " +
                                    std::to_string(plan.stage_count() - 1));
      if (tied[s])
        return breach(rule::ties, "stage " + std::to_string(s) +
                                    " is tied twice; put all stages of a parameter in one set");
      tied[s] = true;
    }
  return {};
}

}  // namespace

result<validation> validate_plan(const pipeline_plan& plan, const validation_limits& limits) {
  TRY_VOID(check_shape(plan));
  TRY_VOID(check_limits(plan, limits));
  cell_index index(plan);
  checks::subject s{plan, index, limits, is_executable(plan)};
  validation found;
  found.executable = s.executable;
  found.ranks.resize(plan.rank_count());
  found.hash = plan_hash(plan);
  TRY_VOID(checks::counts(s));
  TRY_VOID(checks::order(s));
  TRY_VOID(checks::channels(s));
  TRY_VOID(checks::cycles(s));
  TRY_VOID(checks::versions(s, found.ranks));
  TRY_VOID(checks::updates(s));
  TRY_VOID(checks::ties(s));
  TRY_VOID(checks::morphing(s));
  TRY_VOID(checks::facts(s, found.hash));
  TRY_VOID(checks::memory(s, found.ranks));
  found.warnings = checks::warnings(s, found.ranks);
  return found;
}

}  // namespace shoal::core
