#include "core/schedule/cell_index.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "core/schedule/breach.hpp"

namespace shoal::core {

namespace {

result<void> check_count(const char* what, std::size_t count, std::size_t most) {
  if (count >= 1 && count <= most) return {};
  return {errc::config, "rule 3 (placement): the plan has " + std::to_string(count) + " " + what +
                          "; the nearest legal number is " + std::to_string(count < 1 ? 1 : most) +
                          "."};
}

result<void> check_placement(const pipeline_plan& plan) {
  for (std::size_t c = 0; c < plan.placement.size(); ++c) {
    auto& row = plan.placement[c];
    if (row.size() != plan.stage_count())
      return {errc::config, "rule 3 (placement): chain " + std::to_string(c) + " places " +
                              std::to_string(row.size()) + " stages, chain 0 places " +
                              std::to_string(plan.stage_count()) + "; they must be as many."};
    for (std::size_t s = 0; s < row.size(); ++s)
      if (row[s] >= plan.rank_count())
        return {errc::config, "rule 3 (placement): chain " + std::to_string(c) + " places stage " +
                                std::to_string(s) + " on rank " + std::to_string(row[s]) +
                                "; the last rank is " + std::to_string(plan.rank_count() - 1) +
                                "."};
  }
  if (!plan.chain_of.empty() && plan.chain_of.size() != plan.micro_batches)
    return {errc::config, "rule 13 (routing): chains are given for " +
                            std::to_string(plan.chain_of.size()) + " micro-batches of " +
                            std::to_string(plan.micro_batches) + "."};
  for (std::size_t m = 0; m < plan.chain_of.size(); ++m)
    if (plan.chain_of[m] >= plan.placement.size())
      return {errc::config, "rule 13 (routing): micro-batch " + std::to_string(m) +
                              " runs through chain " + std::to_string(plan.chain_of[m]) +
                              "; the last chain is " + std::to_string(plan.placement.size() - 1) +
                              "."};
  return {};
}

result<void> check_numbers(const pipeline_plan& plan, rank_index r, std::size_t i) {
  auto& c = plan.ranks[r][i];
  if (static_cast<std::size_t>(c.what) >= operation_count)
    return breach(rule::counts, r, i, c, "there is no such operation");
  if (c.stage >= plan.stage_count())
    return breach(rule::placement, r, i, c,
                  "the last stage is " + std::to_string(plan.stage_count() - 1));
  if (c.micro_batch == none && has_micro_batch(c.what))
    return breach(rule::counts, r, i, c, "this operation needs a micro-batch");
  if (c.micro_batch != none && !has_micro_batch(c.what) && c.what != operation::optimize)
    return breach(rule::counts, r, i, c, "this operation takes no micro-batch");
  if (c.micro_batch != none && c.micro_batch >= plan.micro_batches)
    return breach(rule::counts, r, i, c,
                  "the last micro-batch is " + std::to_string(plan.micro_batches - 1));
  return {};
}

}  // namespace

result<void> check_shape(const pipeline_plan& plan) {
  TRY_VOID(check_count("ranks", plan.ranks.size(), plan_ranks_max));
  TRY_VOID(check_count("chains", plan.placement.size(), plan_ranks_max));
  TRY_VOID(check_count("stages", plan.placement[0].size(), plan_stages_max));
  TRY_VOID(check_count("micro-batches", plan.micro_batches, plan_micro_batches_max));
  auto pairs = std::size_t{plan.stage_count()} * plan.micro_batches;
  TRY_VOID(check_count("pairs of stage and micro-batch", pairs, plan_cells_max));
  std::size_t cells = 0;
  for (auto& order : plan.ranks) cells += order.size();
  TRY_VOID(check_count("cells", cells, plan_cells_max));
  if (plan.batches < 1 || plan.micro_batches % plan.batches != 0)
    return {errc::config, "rule 10 (accumulation): " + std::to_string(plan.micro_batches) +
                            " micro-batches do not make " + std::to_string(plan.batches) +
                            " equal batches."};
  TRY_VOID(check_placement(plan));
  for (rank_index r = 0; r < plan.rank_count(); ++r)
    for (std::size_t i = 0; i < plan.ranks[r].size(); ++i) TRY_VOID(check_numbers(plan, r, i));
  return {};
}

cell_index::cell_index(const pipeline_plan& plan) : plan_(plan) {
  first_.push_back(0);
  auto pairs = std::size_t{plan.stage_count()} * plan.micro_batches;
  for (auto& order : plan.ranks) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      auto& c = order[i];
      if (!has_micro_batch(c.what)) continue;
      auto& table = tables_[static_cast<std::size_t>(c.what)];
      if (table.empty()) table.assign(pairs, no_cell);
      auto& entry = table[std::size_t{c.stage} * plan.micro_batches + c.micro_batch];
      if (entry == no_cell) entry = first_.back() + static_cast<cell_number>(i);
    }
    first_.push_back(first_.back() + static_cast<cell_number>(order.size()));
  }
}

rank_index cell_index::rank_of(cell_number n) const {
  SHOAL_ASSERT(n < count());
  auto after = std::upper_bound(first_.begin(), first_.end(), n);
  return static_cast<rank_index>(after - first_.begin() - 1);
}

std::size_t end_of_group(const std::vector<cell>& order, std::size_t i) {
  auto end = i + 1;
  if (order[i].group != none)
    while (end < order.size() && order[end].group == order[i].group) ++end;
  return end;
}

}  // namespace shoal::core
