// Chimera: two pipelines in opposite directions over the same ranks, each with half of the
// micro-batches, merged so that each fills the other's bubbles.
//
//   p=4, a unit of 4 micro-batches, chain 0 has 0 and 1, chain 1 has 2 and 3:
//     rank 0:  0F0 0F1 .. 3F2 3B2 ..       rank 3:  0F2 0F3 .. 3F0 3B0 ..
//
//   Li and Hoefler, SC'21 (arXiv 2107.06925). Where both chains want a rank, a backward goes first,
//   then the older micro-batch: this greedy merge gives the paper's bubbles. More than p
//   micro-batches run as units of p, one after the other in each rank's order, so that the next
//   unit fills the drain of the last.

#include <algorithm>
#include <queue>
#include <string>
#include <tuple>

#include "core/schedule/families.hpp"

namespace shoal::core::families {

namespace {

/// Merges one unit: `half` micro-batches of each chain, numbered from `first` (chain 0) and
/// `first + half`.
class merge {
public:
  merge(pipeline_plan& plan, const plan_options& options, micro_batch_index first,
        std::uint32_t half)
    : plan_(plan), options_(options), ready_(options.ranks), busy_(options.ranks, false) {
    for (std::uint32_t k = 0; k < half; ++k)
      for (std::uint32_t chain : {0u, 1u}) {
        auto m = first + chain * half + k;
        age_.resize(std::max<std::size_t>(age_.size(), m - first + 1));
        age_[m - first] = 2 * k + chain;
        ready_[plan.placement[chain][0]].push(key(false, m - first));
      }
    first_ = first;
  }

  void run() {
    for (rank_index r = 0; r < options_.ranks; ++r) serve(r, 0);
    while (!events_.empty()) {
      auto now = std::get<0>(events_.top());
      while (!events_.empty() && std::get<0>(events_.top()) == now) {
        auto [time, r, c] = events_.top();
        events_.pop();
        busy_[r] = false;
        end(c);
      }
      for (rank_index r = 0; r < options_.ranks; ++r)
        if (!busy_[r]) serve(r, now);
    }
  }

private:
  // Least first: backward before forward, then older, then the micro-batch within the unit.
  using priority = std::tuple<bool, std::uint32_t, std::uint32_t>;
  using event = std::tuple<std::uint64_t, rank_index, cell>;

  priority key(bool backward, std::uint32_t m) const { return {!backward, age_[m], m}; }

  virtual_stage stage_of(rank_index r, micro_batch_index m) const {
    return plan_.chain(m) == 0 ? r : options_.ranks - 1 - r;
  }

  void serve(rank_index r, std::uint64_t now) {
    if (ready_[r].empty()) return;
    auto [is_forward, age, offset] = ready_[r].top();
    ready_[r].pop();
    auto m = first_ + offset;
    auto s = stage_of(r, m);
    auto costs = costs_of(options_.costs, r);
    std::uint64_t takes = is_forward ? costs.forward : costs.backward;
    if (is_forward) {
      plan_.ranks[r].push_back({operation::forward, s, m});
    } else {
      if (options_.recompute && s + 1 < plan_.stage_count()) takes += costs.recompute;
      append_backward(plan_, r, s, m, options_.recompute);
    }
    busy_[r] = true;
    events_.push({now + takes, r, plan_.ranks[r].back()});
  }

  void end(const cell& c) {
    bool is_forward = c.what == operation::forward;
    bool turn = is_forward && c.stage + 1 == plan_.stage_count();
    if (!is_forward && c.stage == 0) return;
    auto next = turn ? c.stage : is_forward ? c.stage + 1 : c.stage - 1;
    auto r = plan_.rank_of(next, c.micro_batch);
    ready_[r].push(key(turn || !is_forward, c.micro_batch - first_));
  }

  pipeline_plan& plan_;
  const plan_options& options_;
  micro_batch_index first_ = 0;
  std::vector<std::uint32_t> age_;
  std::vector<std::priority_queue<priority, std::vector<priority>, std::greater<>>> ready_;
  std::vector<bool> busy_;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
};

}  // namespace

result<pipeline_plan> chimera(const plan_options& options) {
  auto p = options.ranks, m = options.micro_batches;
  if (p % 2 != 0)
    return illegal(options, "ranks", p, "stage s meets stage p-1-s on another rank", p - 1, p + 1);
  if (m % 2 != 0)
    return illegal(options, "micro-batches", m, "each direction gets half of them", m - 1, m + 1);
  auto plan = empty_plan(options);
  plan.placement = opposite_placement(p);
  plan.chain_of.assign(m, 0);
  for (micro_batch_index first = 0; first < m; first += p) {
    auto half = std::min(p, m - first) / 2;
    std::fill_n(plan.chain_of.begin() + first + half, half, 1);
    merge(plan, options, first, half).run();
  }
  return plan;
}

}  // namespace shoal::core::families
