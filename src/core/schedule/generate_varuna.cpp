// Varuna's static list: a game of queues with whole-number times.
//
//   Each rank serves, whenever it is free: the second half of a backward, then the first half of
//   one, then a recompute, then a forward; each kind in order of arrival. When rank r is done with
//   the first half of a backward, rank r-1 may recompute that micro-batch: the recompute runs
//   beside the second half and ends when the gradient arrives.
//
//   p=4, m=5, F=R=1, B=2, rank 2:  F0 F1 F2 R0 B0 R1 B1 R2 B2 F3 F4 R3 B3 R4 B4
//
//   Athlur et al., EuroSys'22; microsoft/varuna's generator plays it in ticks with F=R=1, B=2; here
//   events carry real costs, one set a rank. At run time Varuna deviates: where the next cell is
//   not ready, it takes the next forward that is (`order_policy`).

#include <algorithm>
#include <array>
#include <deque>
#include <queue>
#include <string>
#include <tuple>

#include "core/schedule/families.hpp"

namespace shoal::core::families {

namespace {

enum task : std::uint8_t { second_half, first_half, recompute, forward, task_count };

class game {
public:
  explicit game(const plan_options& options)
    : options_(options), plan_(empty_plan(options)), ranks_(options.ranks) {
    plan_.placement = {linear_placement(options.ranks)};
    for (auto& rank : ranks_) {
      rank.recomputed.assign(options.micro_batches, false);
      rank.gradient.assign(options.micro_batches, false);
    }
    for (micro_batch_index m = 0; m < options.micro_batches; ++m)
      ranks_[0].queues[forward].push_back(m);
  }

  pipeline_plan play() {
    serve(0, 0);
    while (!events_.empty()) {
      // All that ends now ends before anyone chooses: a push is seen by those who are free then.
      auto now = std::get<0>(events_.top());
      while (!events_.empty() && std::get<0>(events_.top()) == now) {
        auto [time, r, what, m] = events_.top();
        events_.pop();
        ranks_[r].busy = false;
        end(r, what, m);
      }
      for (rank_index r = 0; r < options_.ranks; ++r)
        if (!ranks_[r].busy) serve(r, now);
    }
    return std::move(plan_);
  }

private:
  using event = std::tuple<std::uint64_t, rank_index, task, micro_batch_index>;

  struct rank_state {
    std::array<std::deque<micro_batch_index>, task_count> queues;
    std::vector<bool> recomputed, gradient;
    bool busy = false;
  };

  bool last(rank_index r) const { return r + 1 == options_.ranks; }

  std::uint64_t time_of(rank_index r, task what) const {
    auto costs = costs_of(options_.costs, r);
    auto half = (costs.backward + 1) / 2;
    if (what == forward) return costs.forward;
    if (what == recompute) return costs.recompute;
    return what == first_half ? half : costs.backward - half;
  }

  void serve(rank_index r, std::uint64_t now) {
    auto& rank = ranks_[r];
    for (auto what : {second_half, first_half, recompute, forward}) {
      auto& queue = rank.queues[what];
      if (queue.empty()) continue;
      auto m = queue.front();
      queue.pop_front();
      auto& order = plan_.ranks[r];
      if (what == forward) order.push_back({operation::forward, r, m});
      if (what == recompute) order.push_back({operation::recompute, r, m});
      if (what == first_half) order.push_back({operation::backward, r, m});
      rank.busy = true;
      events_.push({now + time_of(r, what), r, what, m});
      return;
    }
  }

  void end(rank_index r, task what, micro_batch_index m) {
    switch (what) {
      case forward:
        if (last(r))
          ranks_[r].queues[first_half].push_back(m);
        else
          ranks_[r + 1].queues[forward].push_back(m);
        break;
      case first_half:
        ranks_[r].queues[second_half].push_back(m);
        if (r > 0) ranks_[r - 1].queues[recompute].push_back(m);
        break;
      case recompute:
        ranks_[r].recomputed[m] = true;
        start_backward(r, m);
        break;
      case second_half:
        if (r > 0) {
          ranks_[r - 1].gradient[m] = true;
          start_backward(r - 1, m);
        }
        break;
      case task_count:
        break;
    }
  }

  void start_backward(rank_index r, micro_batch_index m) {
    if (ranks_[r].recomputed[m] && ranks_[r].gradient[m]) ranks_[r].queues[first_half].push_back(m);
  }

  const plan_options& options_;
  pipeline_plan plan_;
  std::vector<rank_state> ranks_;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
};

/// The most micro-batches that a rank holds in the order that is written.
std::uint32_t live_peak(const pipeline_plan& plan) {
  std::uint32_t peak = 0;
  for (auto& order : plan.ranks) {
    std::uint32_t live = 0;
    for (auto& c : order) {
      if (c.what == operation::forward) peak = std::max(peak, ++live);
      if (c.what == operation::backward) --live;
    }
  }
  return peak;
}

}  // namespace

result<pipeline_plan> varuna(const plan_options& options) {
  auto plan = game(options).play();
  if (auto peak = live_peak(plan); options.live_max < peak)
    return illegal(options, "live micro-batches", options.live_max,
                   "its list holds " + std::to_string(peak), 0, peak);
  plan.policy.opportunistic = options.name == "varuna";
  plan.policy.live_max = options.live_max;
  return plan;
}

}  // namespace shoal::core::families
