#include "core/plan/grid_simulate.hpp"

#include <algorithm>
#include <chrono>

#include "base/assert.hpp"
#include "core/pipeline/simulation.hpp"
#include "core/schedule/make_plan.hpp"

namespace shoal::core {

namespace {

plan_options order_of(const grid_plan& plan) {
  plan_options order{.ranks = plan.depth, .micro_batches = plan.micro_batches};
  order.recompute = std::ranges::find(plan.recompute, true) != plan.recompute.end();
  switch (plan.schedule) {
    case stage_order::gpipe:
      order.name = "gpipe";
      break;
    case stage_order::interleaved:
      order.name = "interleaved-1f1b";
      order.chunks = plan.chunks;
      break;
    default:
      for (auto count : plan.in_flight)
        order.warm_up.push_back(std::min(count, plan.micro_batches) - 1);
  }
  return order;
}

}  // namespace

double simulated_seconds(const sized_profile& profile, const grid_plan& plan) {
  auto order = make_plan(order_of(plan));
  SHOAL_ASSERT(order.has_value());
  auto& model = profile.profile;
  simulation_costs costs;
  for (std::size_t s = 0; s < plan.cuts.size(); ++s) {
    auto& stage = costs.stages.emplace_back();
    for (auto b = plan.cuts[s].begin; b < plan.cuts[s].end; ++b) {
      stage.forward_ns += model.blocks[b].forward.count();
      stage.backward_ns += model.blocks[b].backward.count();
    }
    // Where another stage recomputes and this one need not, its R takes no time.
    if (plan.recompute[s]) stage.recompute_ns = stage.forward_ns;
    stage.input_bytes = model.blocks[plan.cuts[s].begin].boundary_bytes;
  }
  costs.link = link_table::flat(model.link_latency.count(), model.link_bytes_per_s);
  auto ran = simulate(*order, costs);
  SHOAL_ASSERT(ran.has_value());
  return std::chrono::duration<double>(std::chrono::nanoseconds(ran->pipeline_ns)).count();
}

}  // namespace shoal::core
