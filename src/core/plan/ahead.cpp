#include "core/plan/ahead.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"
#include "core/pipeline/search_warm_up.hpp"
#include "core/schedule/schedule.hpp"

namespace shoal::core::planning {

namespace {

// Cells that may be simulated for one layout: some milliseconds.
constexpr std::uint64_t cells_max = 40'000;

std::int64_t whole_ns(double seconds) { return std::llround(seconds * 1e9); }

bool does_recompute(const price_list& prices, const chain& replica) {
  for (std::size_t part = 0; part < replica.blocks.size(); ++part)
    if (recomputes(prices, replica, part)) return true;
  return false;
}

simulation_costs costs_of(const price_list& prices, const chain& replica) {
  simulation_costs costs;
  auto parts = replica.blocks.size();
  for (std::size_t p = 0; p < parts; ++p) {
    auto blocks = replica.blocks[p];
    auto forward = prices.cost.forward_seconds(blocks);
    stage_costs part{.forward_ns = whole_ns(forward),
                     .backward_ns = whole_ns(prices.cost.seconds(blocks, false) - forward),
                     .input_bytes = prices.cost.boundary_bytes(blocks.begin),
                     .parameter_bytes = prices.cost.parameter_bytes(blocks)};
    if (recomputes(prices, replica, p)) part.recompute_ns = part.forward_ns;
    costs.stages.push_back(part);
  }
  for (auto& w : replica.workers) costs.speeds.push_back(w.speed);
  costs.link = prices.cost.link();
  return costs;
}

/// Micro-batches that fit into each node between their forward and backward pass; never more than a
/// stage before has.
std::vector<std::uint32_t> room_of(const price_list& prices, const chain& replica) {
  auto most = replica.micro_batches.size();
  std::vector<std::uint32_t> room;
  for (stage_index s = 0; s < replica.stages(); ++s) {
    auto needs = [&](std::uint32_t count) { return needed_bytes(prices, replica, s, count); };
    auto left =
      replica.workers[s].memory_bytes - std::min(replica.workers[s].memory_bytes, needs(0));
    auto each = std::max<std::uint64_t>(1, needs(1) - needs(0));
    auto fits = std::clamp<std::uint64_t>(left / each, 1, most);
    room.push_back(std::min(static_cast<std::uint32_t>(fits), room.empty() ? most : room.back()));
  }
  return room;
}

std::uint64_t cells_of(const price_list& prices, const candidate& c) {
  std::uint64_t cells = 0;
  for (auto& replica : c.chains)
    cells += (does_recompute(prices, replica) ? 3 : 2) *
             std::uint64_t{replica.micro_batches.size()} * replica.blocks.size();
  return cells;
}

std::vector<std::uint32_t> ahead_of(const price_list& prices, const chain& replica,
                                    std::uint64_t cells) {
  if (prices.order != stage_order::searched && prices.order != stage_order::varuna) return {};
  auto room = room_of(prices, replica);
  if (prices.order == stage_order::varuna || replica.stages() == 1) return room;
  warm_up_options options{.micro_batches = replica.micro_batches.size(),
                          .recompute = does_recompute(prices, replica),
                          .live_max = room};
  auto costs = costs_of(prices, replica);
  options.tries_max = static_cast<std::uint32_t>(cells_max * 8 / std::max<std::uint64_t>(cells, 1));
  if (options.tries_max < 8) return estimated_warm_up(costs, options);
  auto found = search_warm_up(costs, options);
  SHOAL_ASSERT(found);
  return found->warm_up;
}

nanoseconds simulated_step(const price_list& prices, const candidate& c, const layout& shape) {
  std::vector<pipeline_plan> plans;
  std::vector<simulation_costs> costs;
  std::size_t pieces = 1;
  auto job = prices.job;
  job.parallelism.schedule = to_string(prices.order);
  for (replica_index r = 0; r < c.chains.size(); ++r) {
    auto made = plan_of(schedule_options_of(shape, r, job));
    SHOAL_ASSERT(made);
    plans.push_back(std::move(*made));
    costs.push_back(costs_of(prices, c.chains[r]));
    if (prices.order == stage_order::varuna) costs.back().live_max = shape.replicas[r].ahead;
    pieces = std::max(pieces, pieces_of(prices.tree, c.chains[r].micro_batches).size());
  }
  std::vector<replica_input> inputs;
  for (std::size_t r = 0; r < plans.size(); ++r) inputs.push_back({&plans[r], &costs[r]});
  auto ran = simulate_step(inputs, {.kind = reduction_kind::partial_sums,
                                    .link = prices.cost.link(),
                                    .pieces = static_cast<std::uint32_t>(pieces)});
  SHOAL_ASSERT(ran);
  return nanoseconds(ran->makespan_ns);
}

}  // namespace

std::optional<nanoseconds> set_ahead(const price_list& prices, const candidate& c, layout& shape,
                                     bool simulate) {
  auto cells = cells_of(prices, c);
  for (std::size_t r = 0; r < c.chains.size(); ++r) {
    bool again = r > 0 && have_like_workers(c.chains[r], c.chains[r - 1]) &&
                 c.chains[r].blocks == c.chains[r - 1].blocks &&
                 c.chains[r].micro_batches.size() == c.chains[r - 1].micro_batches.size();
    shape.replicas[r].ahead =
      again ? shape.replicas[r - 1].ahead : ahead_of(prices, c.chains[r], cells);
  }
  if (!simulate || cells > cells_max) return std::nullopt;
  return simulated_step(prices, c, shape);
}

}  // namespace shoal::core::planning
