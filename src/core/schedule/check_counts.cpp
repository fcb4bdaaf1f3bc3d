// Rules 1, 3, 12, 13: what is there, how often, where.
#include <algorithm>

#include "core/schedule/breach.hpp"
#include "core/schedule/checks.hpp"
#include "core/schedule/text.hpp"

namespace shoal::core::checks {

namespace {

/// Every cell that names a micro-batch is on the rank of its stage, and is the first of its kind.
result<void> check_places(const subject& s) {
  std::vector<std::vector<rank_index>> holders;
  for (virtual_stage stage = 0; stage < s.plan.stage_count(); ++stage)
    holders.push_back(ranks_of(s.plan, stage));
  for (rank_index r = 0; r < s.plan.rank_count(); ++r)
    for (std::size_t i = 0; i < s.plan.ranks[r].size(); ++i) {
      auto& c = s.plan.ranks[r][i];
      if (c.micro_batch == none) {
        auto& held_by = holders[c.stage];
        if (!std::binary_search(held_by.begin(), held_by.end(), r))
          return breach(
            rule::placement, r, i, c,
            "stage " + std::to_string(c.stage) + " is on rank " + std::to_string(held_by[0]));
        continue;
      }
      auto holder = s.plan.rank_of(c.stage, c.micro_batch);
      if (holder != r) {
        bool elsewhere = false;
        for (auto& row : s.plan.placement) elsewhere |= row[c.stage] == r;
        return breach(elsewhere ? rule::routing : rule::placement, r, i, c,
                      "micro-batch " + std::to_string(c.micro_batch) + " finds stage " +
                        std::to_string(c.stage) + " on rank " + std::to_string(holder));
      }
      if (!has_micro_batch(c.what)) continue;
      auto first = s.index.find(c.what, c.stage, c.micro_batch);
      if (first != s.index.number(r, i))
        return breach(
          rule::counts, r, i, c,
          "it comes twice; the first is cell " + std::to_string(s.index.place_of(first)));
    }
  return {};
}

error missing(const subject& s, operation what, virtual_stage stage, micro_batch_index m,
              const std::string& why) {
  return breach(rule::counts, "rank " + std::to_string(s.plan.rank_of(stage, m)) + " lacks \"" +
                                text_of(cell{what, stage, m}) + "\"" + why);
}

result<void> check_complete(const subject& s) {
  for (virtual_stage stage = 0; stage < s.plan.stage_count(); ++stage)
    for (micro_batch_index m = 0; m < s.plan.micro_batches; ++m) {
      auto has = [&](operation what) { return s.index.find(what, stage, m) != no_cell; };
      bool b = has(operation::backward), i = has(operation::input_gradient),
           w = has(operation::weight_gradient);
      if (!has(operation::forward)) return missing(s, operation::forward, stage, m, "");
      if (!b && !i && !w)
        return missing(s, operation::backward, stage, m, ", or I and W in its place");
      if (b && (i || w)) {
        auto extra =
          s.index.find(i ? operation::input_gradient : operation::weight_gradient, stage, m);
        return breach(rule::counts, s.index.rank_of(extra), s.index.place_of(extra),
                      s.index.at(extra),
                      "\"" + text_of(cell{operation::backward, stage, m}) +
                        "\" does the same; keep one of them");
      }
      if (i && !w) return missing(s, operation::weight_gradient, stage, m, ", which follows its I");
      if (w && !i) return missing(s, operation::input_gradient, stage, m, ", which its W needs");
    }
  return {};
}

result<void> check_group(const subject& s, rank_index r, std::size_t begin, std::size_t end) {
  auto& order = s.plan.ranks[r];
  if (end - begin < 2)
    return breach(rule::groups, r, begin, order[begin],
                  "it is alone in group " + std::to_string(order[begin].group) +
                    "; a group has at least two cells side by side");
  for (auto i = begin; i < end; ++i) {
    if (!is_compute(order[i].what))
      return breach(rule::groups, r, i, order[i], "only F, B, I, W and R overlap");
    cell_number needed = no_cell;
    s.index.for_each_input(order[i], [&](cell_number input) {
      if (input >= s.index.number(r, begin) && input < s.index.number(r, end)) needed = input;
    });
    if (needed != no_cell)
      return breach(rule::groups, r, i, order[i],
                    "it needs \"" + text_of(s.index.at(needed)) +
                      "\" of the same group; cells that overlap must be independent");
  }
  return {};
}

result<void> check_groups(const subject& s) {
  for (rank_index r = 0; r < s.plan.rank_count(); ++r) {
    std::vector<std::uint32_t> seen;
    auto& order = s.plan.ranks[r];
    for (std::size_t i = 0; i < order.size();) {
      auto end = end_of_group(order, i);
      if (order[i].group != none) {
        TRY_VOID(check_group(s, r, i, end));
        seen.push_back(order[i].group);
      }
      i = end;
    }
    std::sort(seen.begin(), seen.end());
    auto twice = std::adjacent_find(seen.begin(), seen.end());
    if (twice != seen.end())
      return breach(rule::groups, "rank " + std::to_string(r) + ": group " +
                                    std::to_string(*twice) +
                                    " is in two places; a group's cells stand side by side");
  }
  return {};
}

}  // namespace

result<void> counts(const subject& s) {
  TRY_VOID(check_places(s));
  TRY_VOID(check_complete(s));
  return check_groups(s);
}

}  // namespace shoal::core::checks
