#include "core/plan/grid_score.hpp"

#include <algorithm>
#include <cmath>

#include "core/plan/losses.hpp"

namespace shoal::core {

namespace planning {

namespace {

double risk_of(const grid_request& request, double step_s, std::uint32_t nodes,
               std::uint32_t replicas) {
  if (replicas > 1) return 0;
  return loss_share(nodes, step_s * request.redone_steps, request.mean_life);
}

/// Micro-batches that stage 0 must have under way so that the links never hold it up.
double hidden_in_flight(const pipeline_shape& shape) {
  auto hops = shape.depth * shape.chunks - 1.0;
  auto period = std::max(shape.slowest_s, shape.transfer_s);
  return period > 0 ? (shape.sum_s + 2 * hops * shape.hop_s) / period : shape.depth;
}

}  // namespace

double in_flight_of(const pipeline_shape& shape, stage_order schedule,
                    std::uint32_t micro_batches) {
  double p = shape.depth, m = micro_batches;
  switch (schedule) {
    case stage_order::one_f_one_b:
      return std::min(m, p);
    case stage_order::eager:
      return std::min(m, 2 * p - 1);
    case stage_order::searched:
      return std::min(m, std::max(p, std::ceil(hidden_in_flight(shape) * (1 - 1e-9))));
    case stage_order::interleaved:
      return std::min(m, p + (p - 1) / shape.chunks);
    default:
      return m;
  }
}

std::uint32_t stash_count(const pipeline_shape& shape, stage_order schedule,
                          std::uint32_t micro_batches, std::uint32_t s) {
  auto p = shape.depth;
  auto after = p - 1 - s % p;
  auto at_most = [&](double count) {
    return static_cast<std::uint32_t>(std::min<double>(micro_batches, std::ceil(count)));
  };
  switch (schedule) {
    case stage_order::one_f_one_b:
      return at_most(after + 1.0);
    case stage_order::eager:
      return at_most(2.0 * after + 1);
    case stage_order::searched: {
      // Warm-up falls from stage to stage by an equal part of that of stage 0.
      auto first = in_flight_of(shape, schedule, micro_batches) - 1;
      return at_most(1 + (p == 1 ? 0 : std::ceil(first * after / (p - 1.0) - 1e-9)));
    }
    case stage_order::interleaved: {
      // Of 2 (p-1-r) + (v-1) p + 1 chunks in flight, each virtual stage has its share of p.
      auto chunks = 2.0 * after + (shape.chunks - 1.0) * p + 1;
      return at_most(std::ceil(chunks / (shape.chunks * p)) * p);
    }
    default:
      return micro_batches;
  }
}

double span_seconds(const pipeline_shape& shape, stage_order schedule,
                    std::uint32_t micro_batches) {
  auto hops = 2 * (shape.depth * shape.chunks - 1.0) * shape.hop_s;
  auto once = shape.sum_s + hops;
  auto period = std::max(
    {shape.slowest_s, shape.transfer_s, once / in_flight_of(shape, schedule, micro_batches)});
  if (schedule == stage_order::interleaved)
    return micro_batches * period + (shape.depth - 1.0) * shape.slowest_s / shape.chunks + hops;
  if (schedule == stage_order::gpipe) period = std::max(shape.slowest_s, shape.transfer_s);
  return once + (micro_batches - 1.0) * period;
}

double score_of(const grid_request& request, double step_s, std::uint32_t depth,
                std::uint32_t replicas) {
  auto nodes = depth * replicas;
  auto seconds = step_s * (1 + risk_of(request, step_s, nodes, replicas));
  return request.price_per_hour > 0 ? seconds * nodes * request.price_per_hour / 3600 : seconds;
}

void set_score(const grid_request& request, const costs& cost, grid_plan& plan) {
  plan.step_s = plan.span_s + plan.exchange_s;
  plan.risk = risk_of(request, plan.step_s, plan.nodes(), plan.replicas);
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
  plan.score *= 1 + loss_share(1, plan.pause_s, request.next_change);
}

}  // namespace planning

}  // namespace shoal::core
