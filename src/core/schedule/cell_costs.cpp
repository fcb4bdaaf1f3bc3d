#include "core/schedule/cell_costs.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <string>

#include "base/assert.hpp"
#include "core/schedule/breach.hpp"
#include "core/schedule/text.hpp"

namespace shoal::core {

std::uint64_t cost_of(const cell_costs& costs, operation what) {
  switch (what) {
    case operation::forward:
      return costs.forward;
    case operation::backward:
      return costs.backward;
    case operation::recompute:
      return costs.recompute;
    case operation::input_gradient:
      return costs.input_gradient;
    case operation::weight_gradient:
      return costs.weight_gradient;
    default:
      return 0;
  }
}

cell_costs costs_of(const std::vector<cell_costs>& all, rank_index r) {
  return all.empty() ? cell_costs{} : all[r];
}

namespace {

/// A walk through all ranks as far as inputs allow. A rank is looked at again when a neighbour
/// stage of its micro-batch has moved.
class walk {
public:
  walk(const pipeline_plan& plan, const cell_index& index, const std::vector<cell_costs>& costs)
    : plan_(plan),
      index_(index),
      costs_(costs),
      times_(index.count()),
      done_(index.count(), false),
      next_(plan.rank_count(), 0),
      clock_(plan.rank_count(), 0),
      queued_(plan.rank_count(), true) {
    for (rank_index r = 0; r < plan.rank_count(); ++r) {
      queue_.push_back(r);
      for (auto& c : plan.ranks[r])
        if (c.what == operation::reduce) meetings_[c.stage].arrived[r] = 0;
    }
  }

  result<std::vector<cell_time>> run() {
    while (!queue_.empty()) {
      auto r = queue_.front();
      queue_.pop_front();
      queued_[r] = false;
      while (next_[r] < plan_.ranks[r].size() && step(r)) {
      }
    }
    for (rank_index r = 0; r < plan_.rank_count(); ++r)
      if (next_[r] < plan_.ranks[r].size()) return stuck(r);
    return std::move(times_);
  }

private:
  /// Whether cell n, of the group that begins at place `begin`, may run, and from when.
  bool ready(const cell& c, cell_number group_begin, cell_number group_end, std::uint64_t& from,
             cell_number& missing) const {
    bool all = true;
    index_.for_each_input(c, [&](cell_number input) {
      if (done_[input])
        from = std::max(from, times_[input].end);
      else if (input < group_begin || input >= group_end)
        all = false, missing = input;
    });
    return all;
  }

  /// Ranks that sum gradients of a stage together: how often each has come, and when the last came.
  struct meeting {
    std::map<rank_index, std::size_t> arrived;
    std::vector<std::uint64_t> latest;
    std::map<rank_index, std::size_t> left;
  };

  /// Comes to a REDUCE; whether all others have come, and it is over.
  bool meet(rank_index r, virtual_stage s) {
    auto& m = meetings_[s];
    auto k = m.left[r];
    if (m.arrived[r] == k) {
      m.arrived[r] = k + 1;
      if (m.latest.size() == k) m.latest.push_back(0);
      m.latest[k] = std::max(m.latest[k], clock_[r]);
    }
    if (!std::all_of(m.arrived.begin(), m.arrived.end(), [&](auto& a) { return a.second > k; }))
      return false;
    m.left[r] = k + 1;
    clock_[r] = m.latest[k];
    for (auto& [other, count] : m.arrived)
      if (other != r) look_at(other);
    return true;
  }

  void look_at(rank_index r) {
    if (!queued_[r]) queue_.push_back(r), queued_[r] = true;
  }

  bool step(rank_index r) {
    auto& order = plan_.ranks[r];
    auto begin = next_[r], end = end_of_group(order, begin);
    if (order[begin].what == operation::reduce && !meet(r, order[begin].stage)) return false;
    auto from = clock_[r];
    std::uint64_t takes = 0;
    cell_number missing = no_cell;
    for (auto i = begin; i < end; ++i) {
      if (!ready(order[i], index_.number(r, begin), index_.number(r, end), from, missing))
        return false;
      takes += cost_of(costs_of(costs_, r), order[i].what);
    }
    clock_[r] = from + takes;
    next_[r] = end;
    for (auto i = begin; i < end; ++i) {
      times_[index_.number(r, i)] = {from, clock_[r]};
      done_[index_.number(r, i)] = true;
    }
    for (auto i = begin; i < end; ++i) wake(order[i]);
    return true;
  }

  void wake(const cell& c) {
    if (!is_compute(c.what)) return;
    if (c.stage > 0) look_at(plan_.rank_of(c.stage - 1, c.micro_batch));
    if (c.stage + 1 < plan_.stage_count()) look_at(plan_.rank_of(c.stage + 1, c.micro_batch));
  }

  error stuck(rank_index r) const {
    auto& order = plan_.ranks[r];
    auto begin = next_[r], end = end_of_group(order, begin);
    std::uint64_t from = 0;
    cell_number missing = no_cell;
    for (auto i = begin; i < end; ++i)
      if (!ready(order[i], index_.number(r, begin), index_.number(r, end), from, missing)) {
        return breach(rule::cycles, r, i, order[i],
                      "deadlock: it waits for rank " + std::to_string(index_.rank_of(missing)) +
                        "'s \"" + text_of(index_.at(missing)) + "\"");
      }
    return breach(rule::cycles, r, begin, order[begin],
                  "deadlock: it waits for the other ranks of its stage");
  }

  const pipeline_plan& plan_;
  const cell_index& index_;
  const std::vector<cell_costs>& costs_;
  std::vector<cell_time> times_;
  std::vector<bool> done_;
  std::map<virtual_stage, meeting> meetings_;
  std::vector<std::size_t> next_;
  std::vector<std::uint64_t> clock_;
  std::vector<bool> queued_;
  std::deque<rank_index> queue_;
};

}  // namespace

result<std::vector<cell_time>> unroll(const pipeline_plan& plan, const cell_index& index,
                                      const std::vector<cell_costs>& costs) {
  SHOAL_ASSERT(costs.empty() || costs.size() == plan.ranks.size());
  return walk(plan, index, costs).run();
}

}  // namespace shoal::core
