// Rule 8: stages that share a parameter add their gradients before any of them changes it.
#include <algorithm>

#include "core/schedule/breach.hpp"
#include "core/schedule/checks.hpp"
#include "core/schedule/text.hpp"

namespace shoal::core::checks {

namespace {

/// The stages of `set` on rank r, in order. The TIE of the set there names the first.
std::vector<virtual_stage> held_of(const pipeline_plan& plan, rank_index r,
                                   const std::vector<virtual_stage>& set) {
  std::vector<virtual_stage> held;
  for (auto s : stages_of(plan, r))
    if (std::find(set.begin(), set.end(), s) != set.end()) held.push_back(s);
  return held;
}

result<void> check_set(const subject& s, rank_index r, const std::vector<virtual_stage>& held) {
  bool tied = false, open = false;
  for (std::size_t i = 0; i < s.plan.ranks[r].size(); ++i) {
    auto& c = s.plan.ranks[r][i];
    if (std::find(held.begin(), held.end(), c.stage) == held.end()) continue;
    if (finishes(c)) {
      if (tied)
        return breach(rule::ties, r, i, c,
                      "TIE came before it; the nearest legal place for that is after the last B or "
                      "W of the tied stages");
      open = true;
    }
    if (c.what == operation::tie) {
      if (c.stage != held[0])
        return breach(rule::ties, r, i, c,
                      "the nearest legal cell is \"" + text_of(cell{operation::tie, held[0]}) +
                        "\": a rank's first stage of the set speaks for all");
      if (tied) return breach(rule::ties, r, i, c, "it comes twice in one update");
      tied = true;
    }
    if (c.what == operation::reduce && tied)
      return breach(rule::ties, r, i, c, "TIE adds gradients that are reduced; it must come after");
    if (c.what == operation::optimize && open && !tied)
      return breach(rule::ties, r, i, c,
                    "\"" + text_of(cell{operation::tie, held[0]}) + "\" must come before it");
    // The next update begins when every stage of the set has had this one; stages of one rank are
    // updated side by side.
    if (c.what == operation::optimize && c.stage == held.back()) tied = open = false;
  }
  return {};
}

}  // namespace

result<void> ties(const subject& s) {
  if (s.limits.ties.empty()) return {};
  std::vector<bool> shares(s.plan.stage_count(), false);
  for (auto& set : s.limits.ties)
    for (auto stage : set) shares[stage] = true;
  for (rank_index r = 0; r < s.plan.rank_count(); ++r) {
    for (auto& set : s.limits.ties)
      if (auto held = held_of(s.plan, r, set); !held.empty()) TRY_VOID(check_set(s, r, held));
    for (std::size_t i = 0; i < s.plan.ranks[r].size(); ++i)
      if (auto& c = s.plan.ranks[r][i]; c.what == operation::tie && !shares[c.stage])
        return breach(rule::ties, r, i, c, "the stage shares no parameter; leave it out");
  }
  return {};
}

}  // namespace shoal::core::checks
