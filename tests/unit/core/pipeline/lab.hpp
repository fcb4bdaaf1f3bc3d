#pragma once
// Costs in whole units, and a short way to a makespan.

#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "core/pipeline/simulation.hpp"
#include "unit/core/schedule/made.hpp"

namespace shoal::core {

constexpr double unit = 1e6;  // ns

inline std::int64_t ns(double units) { return static_cast<std::int64_t>(units * unit + 0.5); }

inline simulation_costs uniform(std::size_t stages, double f, double b, double r = 0, double i = 0,
                                double w = 0) {
  simulation_costs c;
  c.stages.assign(stages, {.forward_ns = ns(f),
                           .backward_ns = ns(b),
                           .recompute_ns = ns(r),
                           .input_gradient_ns = ns(i),
                           .weight_gradient_ns = ns(w)});
  return c;
}

inline simulation run_of(const pipeline_plan& plan, const simulation_costs& costs) {
  auto s = simulate(plan, costs);
  INFO((s ? "" : s.error().text));
  REQUIRE(s);
  return *s;
}

inline double span_of(const plan_options& options, const simulation_costs& costs) {
  return static_cast<double>(run_of(made(options), costs).makespan_ns) / unit;
}

}  // namespace shoal::core
