#pragma once
// The pipeline simulator as a library: how long a schedule takes, given what its stages and links
// cost, and how far each stage should run ahead.
//
//   shoal::core::simulation_costs costs;
//   costs.stages.assign(4, {.forward_ns = 10'000'000, .backward_ns = 20'000'000});
//   costs.link = shoal::core::link_table::flat(100'000, 1e9);     100 us, 1 GB/s
//   auto ran = shoal::core::simulate(*plan, costs);
//   auto better = shoal::core::search_warm_up(costs, {.micro_batches = 8});
//
// Pure and deterministic. Link shoal::core.

#include "core/pipeline/search_warm_up.hpp"
#include "core/pipeline/simulation.hpp"
#include "shoal/schedule.hpp"
