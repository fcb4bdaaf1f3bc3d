#include "core/pipeline/search_warm_up.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "core/schedule/make_plan.hpp"

namespace shoal::core {

namespace {

/// The rule of the header with `hops` times the real latency, and `more` on top.
std::vector<std::uint32_t> ahead_of(const simulation_costs& costs, const warm_up_options& options,
                                    double hops, std::uint32_t more) {
  auto ranks = static_cast<std::uint32_t>(costs.stages.size());
  std::vector<std::uint32_t> w(ranks, 0);
  for (rank_index r = 0; r + 1 < ranks; ++r) {
    auto& s = costs.stages[r];
    auto turn =
      static_cast<double>(s.forward_ns + s.backward_ns + (options.recompute ? s.recompute_ns : 0));
    auto bytes = costs.stages[r + 1].input_bytes;
    auto hop = static_cast<double>(costs.link.latency_ns(bytes) + costs.link.occupancy_ns(bytes));
    double after = ranks - 1 - r;
    double ahead = turn > 0 ? std::ceil(2 * after * hops * hop / turn) : 0;
    w[r] =
      static_cast<std::uint32_t>(std::min<double>(after + ahead + more, options.micro_batches));
  }
  return w;
}

/// Makes a warm-up one that can be run.
void fit(std::vector<std::uint32_t>& w, const warm_up_options& options) {
  for (std::size_t r = 0; r < w.size(); ++r) {
    w[r] = std::min(w[r], options.micro_batches);
    // A turn begins with a forward: one more is held than the warm-up.
    if (!options.live_max.empty()) w[r] = std::min(w[r], options.live_max[r] - 1);
    // A stage that runs further ahead than the one before would wait for it for ever.
    if (r > 0) w[r] = std::min(w[r], w[r - 1]);
  }
}

class searcher {
public:
  searcher(const simulation_costs& costs, const warm_up_options& options)
    : costs_(costs), options_(options), ranks_(static_cast<std::uint32_t>(costs.stages.size())) {}

  result<searched_schedule> run() {
    // More than twice the ahead of any hop never helps: beyond m all are GPipe.
    for (double hops : {0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0})
      for (std::uint32_t more : {0u, 1u, 2u})
        TRY_VOID(try_one(ahead_of(costs_, options_, hops, more)));
    for (double factor : {2.0, 3.0}) {
      std::vector<std::uint32_t> w(ranks_);
      for (rank_index r = 0; r < ranks_; ++r)
        w[r] = static_cast<std::uint32_t>(factor * (ranks_ - 1 - r));
      TRY_VOID(try_one(w));
    }
    TRY_VOID(trim());
    best_.tried = tried_;
    return std::move(best_);
  }

private:
  result<void> try_one(std::vector<std::uint32_t> w) {
    fit(w, options_);
    if (std::find(seen_.begin(), seen_.end(), w) != seen_.end()) return {};
    if (options_.tries_max != 0 && tried_ == options_.tries_max) return {};
    seen_.push_back(w);
    TRY(auto plan, make_plan({.name = "1f1b",
                              .ranks = ranks_,
                              .micro_batches = options_.micro_batches,
                              .warm_up = w,
                              .recompute = options_.recompute}));
    TRY(auto s, simulate(plan, costs_));
    ++tried_;
    auto sum = std::accumulate(w.begin(), w.end(), std::uint64_t{0});
    auto best_sum = std::accumulate(best_.warm_up.begin(), best_.warm_up.end(), std::uint64_t{0});
    if (best_.warm_up.empty() || s.makespan_ns < best_.expected.makespan_ns ||
        (s.makespan_ns == best_.expected.makespan_ns && sum < best_sum)) {
      best_.warm_up = w;
      best_.plan = std::move(plan);
      best_.expected = std::move(s);
    }
    return {};
  }

  /// Takes away, then adds, a micro-batch at a time from each rank, while that helps.
  result<void> trim() {
    for (int round = 0; round < 2; ++round)
      for (rank_index r = 0; r + 1 < ranks_; ++r) {
        for (int change : {-4, -1, 1}) {
          for (int again = 0; again < 16; ++again) {
            auto before = best_.warm_up;
            auto w = before;
            auto value = static_cast<std::int64_t>(w[r]) + change;
            if (value < 0) break;
            w[r] = static_cast<std::uint32_t>(value);
            TRY_VOID(try_one(w));
            if (best_.warm_up == before) break;
          }
        }
      }
    return {};
  }

  const simulation_costs& costs_;
  const warm_up_options& options_;
  std::uint32_t ranks_;
  std::uint32_t tried_ = 0;
  std::vector<std::vector<std::uint32_t>> seen_;
  searched_schedule best_;
};

}  // namespace

std::vector<std::uint32_t> estimated_warm_up(const simulation_costs& costs,
                                             const warm_up_options& options) {
  auto w = ahead_of(costs, options, 1, 0);
  fit(w, options);
  return w;
}

result<searched_schedule> search_warm_up(const simulation_costs& costs,
                                         const warm_up_options& options) {
  auto ranks = costs.stages.size();
  if (ranks == 0) return error{errc::config, "no stages to search for; expected at least one"};
  if (!options.live_max.empty() && options.live_max.size() != ranks)
    return error{errc::config, std::to_string(options.live_max.size()) + " budgets for " +
                                 std::to_string(ranks) + " ranks; expected none or one each"};
  for (std::size_t r = 0; r < options.live_max.size(); ++r)
    if (options.live_max[r] == 0)
      return error{errc::no_memory,
                   "rank " + std::to_string(r) + " can hold no micro-batch; expected at least 1"};
  return searcher(costs, options).run();
}

}  // namespace shoal::core
