// Rules 7 and 10: when gradients are summed over replicas and weights change.
#include <algorithm>

#include "core/schedule/breach.hpp"
#include "core/schedule/checks.hpp"
#include "core/schedule/text.hpp"

namespace shoal::core::checks {

namespace {

/// What the plan has at all: compute-only plans have none of it.
struct present {
  bool reduce = false, norm = false, optimize = false;
};

present present_in(const pipeline_plan& plan) {
  present found;
  for (auto& order : plan.ranks)
    for (auto& c : order) {
      found.reduce |= c.what == operation::reduce;
      found.norm |= c.what == operation::norm;
      found.optimize |= c.what == operation::optimize;
    }
  return found;
}

/// One stage on one rank between two updates.
struct gradient {
  std::uint32_t added = 0;     ///< micro-batches
  std::uint32_t updates = 0;   ///< done
  std::uint32_t expected = 0;  ///< updates of the whole plan
  bool reduced = false;
  micro_batch_index last = none;
};

class rank_walk {
public:
  rank_walk(const subject& s, rank_index r, present has)
    : s_(s), r_(r), has_(has), stages_(stages_of(s.plan, r)), gradients_(s.plan.stage_count()) {
    for (auto stage : stages_)
      gradients_[stage].expected = each_backward() ? share_of(s.plan, r, stage) : s.plan.batches;
  }

  result<void> run() {
    auto& order = s_.plan.ranks[r_];
    for (std::size_t i = 0; i < order.size(); ++i) {
      auto& c = order[i];
      if (finishes(c)) TRY_VOID(add(i, c));
      if (c.what == operation::reduce) TRY_VOID(reduce(i, c));
      if (c.what == operation::norm) TRY_VOID(norm(i));
      if (c.what == operation::optimize) TRY_VOID(optimize(i, c));
    }
    return check_end();
  }

private:
  bool each_backward() const {
    return s_.plan.weights == weight_semantics::stash ||
           s_.plan.weights == weight_semantics::vertical_sync;
  }

  error wrong(rule which, std::size_t i, const std::string& what) const {
    return breach(which, r_, i, s_.plan.ranks[r_][i], what);
  }

  /// Micro-batches in the next update of stage s here.
  std::uint32_t whole(virtual_stage s) const {
    if (each_backward()) return 1;
    auto begin = s_.plan.batch_size() * gradients_[s].updates;
    std::uint32_t count = 0;
    for (auto m = begin; m < std::min(begin + s_.plan.batch_size(), s_.plan.micro_batches); ++m)
      count += s_.plan.rank_of(s, m) == r_;
    return count;
  }

  result<void> add(std::size_t i, const cell& c) {
    auto& g = gradients_[c.stage];
    if (g.reduced)
      return wrong(rule::updates, i,
                   "REDUCE_GRAD came before it; the nearest legal place for that is after the last "
                   "B or W of the update");
    if (each_backward() && has_.optimize && g.added == 1)
      return wrong(rule::updates, i,
                   "\"" + text_of(cell{operation::optimize, c.stage, g.last}) +
                     "\" must come first: each backward pass is an update");
    if (!each_backward() && has_.optimize && c.micro_batch / s_.plan.batch_size() != g.updates)
      return wrong(rule::accumulation, i,
                   "it belongs to batch " + std::to_string(c.micro_batch / s_.plan.batch_size()) +
                     ", but the next update is that of batch " + std::to_string(g.updates));
    ++g.added;
    g.last = c.micro_batch;
    return {};
  }

  result<void> check_whole(rule which, std::size_t i, virtual_stage s) const {
    auto wanted = whole(s);
    if (gradients_[s].added == wanted) return {};
    return wrong(which, i,
                 std::to_string(gradients_[s].added) + " of " + std::to_string(wanted) +
                   " backward passes of stage " + std::to_string(s) +
                   " are done; the nearest legal place is after the last");
  }

  result<void> reduce(std::size_t i, const cell& c) {
    auto& g = gradients_[c.stage];
    if (g.reduced) return wrong(rule::updates, i, "it comes twice in one update");
    if (g.updates == g.expected)
      return wrong(rule::updates, i, "the stage has had all its updates; leave it out");
    TRY_VOID(check_whole(rule::updates, i, c.stage));
    g.reduced = true;
    return {};
  }

  result<void> norm(std::size_t i) {
    if (s_.plan.weights != weight_semantics::flush)
      return wrong(rule::updates, i, "a global norm needs a flush; leave it out");
    if (normed_) return wrong(rule::updates, i, "it comes twice");
    for (auto s : stages_) {
      TRY_VOID(check_whole(rule::updates, i, s));
      if (has_.reduce && !gradients_[s].reduced)
        return wrong(rule::updates, i,
                     "\"" + text_of(cell{operation::reduce, s}) + "\" must come before it");
    }
    normed_ = true;
    return {};
  }

  result<void> optimize(std::size_t i, const cell& c) {
    auto& g = gradients_[c.stage];
    TRY_VOID(check_whole(rule::accumulation, i, c.stage));
    if (g.updates == g.expected)
      return wrong(rule::updates, i, "the stage has had all its updates; leave it out");
    if (has_.reduce && !g.reduced)
      return wrong(rule::updates, i,
                   "\"" + text_of(cell{operation::reduce, c.stage}) + "\" must come before it");
    if (has_.norm && !normed_) return wrong(rule::updates, i, "NORM must come before it");
    auto named = each_backward() ? g.last : none;
    if (c.micro_batch != named)
      return wrong(rule::updates, i,
                   "the nearest legal cell is \"" +
                     text_of(cell{operation::optimize, c.stage, named, c.version}) + "\"");
    ++g.updates;
    g.added = 0;
    g.reduced = false;
    return {};
  }

  result<void> check_end() const {
    auto lacks = [&](operation what, virtual_stage s) {
      return breach(rule::updates,
                    "rank " + std::to_string(r_) + " lacks \"" + text_of(cell{what, s}) +
                      "\" after the last backward pass of stage " + std::to_string(s));
    };
    for (auto s : stages_) {
      auto& g = gradients_[s];
      if (has_.optimize && g.updates < g.expected) return lacks(operation::optimize, s);
      if (has_.reduce && !has_.optimize && !g.reduced) return lacks(operation::reduce, s);
    }
    if (has_.norm && !normed_ && !stages_.empty()) return lacks(operation::norm, stages_[0]);
    return {};
  }

  const subject& s_;
  rank_index r_;
  present has_;
  std::vector<virtual_stage> stages_;
  std::vector<gradient> gradients_;
  bool normed_ = false;
};

}  // namespace

result<void> updates(const subject& s) {
  auto has = present_in(s.plan);
  bool is_flush = s.plan.weights == weight_semantics::flush;
  if (is_flush && s.plan.batches != 1)
    return breach(rule::accumulation,
                  "a plan with a flush holds one batch, not " + std::to_string(s.plan.batches));
  if (!is_flush && !has.optimize)
    return breach(rule::updates,
                  "without a flush the order of updates is part of the plan, and it "
                  "has no OPT");
  if (has.optimize && s.limits.norm && !has.norm)
    return breach(rule::updates, "gradients are clipped, and the plan has no NORM before its OPT");
  for (rank_index r = 0; r < s.plan.rank_count(); ++r) TRY_VOID(rank_walk(s, r, has).run());
  return {};
}

}  // namespace shoal::core::checks
