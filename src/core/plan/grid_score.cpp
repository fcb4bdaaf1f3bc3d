#include "core/plan/grid_score.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace shoal::core {

std::string to_string(grid_schedule schedule) {
  switch (schedule) {
    case grid_schedule::gpipe:
      return "gpipe";
    case grid_schedule::one_f_one_b:
      return "1f1b";
    case grid_schedule::eager:
      return "1f1b-eager";
    case grid_schedule::searched:
      return "1f1b-searched";
    case grid_schedule::interleaved:
      return "interleaved";
  }
  return "unknown";
}

namespace planning {

namespace {

double seconds_of(nanoseconds time) { return std::chrono::duration<double>(time).count(); }

double risk_of(const grid_request& request, std::uint32_t nodes, std::uint32_t replicas) {
  if (replicas > 1 || request.mean_life <= 0ns) return 0;
  // Losses a second, times what each costs.
  return nodes / seconds_of(request.mean_life) * seconds_of(request.checkpoint_interval) / 2;
}

/// Micro-batches that stage 0 must have under way so that the links never hold it up.
double hidden_in_flight(const pipeline_shape& shape) {
  auto hops = shape.depth * shape.chunks - 1.0;
  auto period = std::max(shape.slowest_s, shape.transfer_s);
  return period > 0 ? (shape.sum_s + 2 * hops * shape.hop_s) / period : shape.depth;
}

}  // namespace

double in_flight_of(const pipeline_shape& shape, grid_schedule schedule,
                    std::uint32_t micro_batches) {
  double p = shape.depth, m = micro_batches;
  switch (schedule) {
    case grid_schedule::gpipe:
      return m;
    case grid_schedule::one_f_one_b:
      return std::min(m, p);
    case grid_schedule::eager:
      return std::min(m, 2 * p - 1);
    case grid_schedule::searched:
      return std::min(m, std::max(p, std::ceil(hidden_in_flight(shape) * (1 - 1e-9))));
    case grid_schedule::interleaved:
      return std::min(m, p + (p - 1) / shape.chunks);
  }
  return m;
}

std::uint32_t stash_count(const pipeline_shape& shape, grid_schedule schedule,
                          std::uint32_t micro_batches, std::uint32_t s) {
  auto p = shape.depth;
  auto after = p - 1 - s % p;
  auto at_most = [&](double count) {
    return static_cast<std::uint32_t>(std::min<double>(micro_batches, std::ceil(count)));
  };
  switch (schedule) {
    case grid_schedule::gpipe:
      return micro_batches;
    case grid_schedule::one_f_one_b:
      return at_most(after + 1.0);
    case grid_schedule::eager:
      return at_most(2.0 * after + 1);
    case grid_schedule::searched: {
      // Warm-up falls from stage to stage by an equal part of that of stage 0.
      auto first = in_flight_of(shape, schedule, micro_batches) - 1;
      return at_most(1 + (p == 1 ? 0 : std::ceil(first * after / (p - 1.0) - 1e-9)));
    }
    case grid_schedule::interleaved: {
      // Of 2 (p-1-r) + (v-1) p + 1 chunks in flight, each virtual stage has its share of p.
      auto chunks = 2.0 * after + (shape.chunks - 1.0) * p + 1;
      return at_most(std::ceil(chunks / (shape.chunks * p)) * p);
    }
  }
  return micro_batches;
}

double span_seconds(const pipeline_shape& shape, grid_schedule schedule,
                    std::uint32_t micro_batches) {
  auto hops = 2 * (shape.depth * shape.chunks - 1.0) * shape.hop_s;
  auto once = shape.sum_s + hops;
  auto period = std::max(
    {shape.slowest_s, shape.transfer_s, once / in_flight_of(shape, schedule, micro_batches)});
  if (schedule == grid_schedule::interleaved)
    return micro_batches * period + (shape.depth - 1.0) * shape.slowest_s / shape.chunks + hops;
  if (schedule == grid_schedule::gpipe) period = std::max(shape.slowest_s, shape.transfer_s);
  return once + (micro_batches - 1.0) * period;
}

double score_of(const grid_request& request, double step_s, std::uint32_t depth,
                std::uint32_t replicas) {
  auto nodes = depth * replicas;
  auto seconds = step_s * (1 + risk_of(request, nodes, replicas));
  return request.price_per_hour > 0 ? seconds * nodes * request.price_per_hour / 3600 : seconds;
}

void set_score(const grid_request& request, const costs& cost, grid_plan& plan) {
  plan.step_s = plan.span_s + plan.exchange_s;
  plan.risk = risk_of(request, plan.nodes(), plan.replicas);
  plan.score = score_of(request, plan.step_s, plan.depth, plan.replicas);
  plan.pause_s = 0;
  if (!request.present || request.present->cuts.empty()) return;
  // Nodes fetch what they lack side by side, so the one that lacks most sets the pause.
  auto& now = request.present->cuts;
  bool grows = plan.replicas > request.present->replicas;
  std::uint64_t most = 0;
  for (std::size_t s = 0; s < plan.cuts.size(); ++s) {
    auto& wanted = plan.cuts[s];
    std::uint64_t kept = 0;
    if (s < now.size() && !grows) {
      index_range both{std::max(wanted.begin, now[s].begin), std::min(wanted.end, now[s].end)};
      if (both.begin < both.end) kept = cost.held_bytes(both);
    }
    most = std::max(most, cost.held_bytes(wanted) - kept);
  }
  plan.pause_s = cost.bulk_seconds(most);
  if (request.next_change > 0ns) plan.score *= 1 + plan.pause_s / seconds_of(request.next_change);
}

}  // namespace planning

}  // namespace shoal::core
