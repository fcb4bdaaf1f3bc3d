// Trains nothing: that the pure core can be used by itself, from its installed headers and library.

#include <cstdio>

#include "base/units.hpp"
#include "core/job.hpp"
#include "core/reduction/tree.hpp"
#include "shoal/plan.hpp"
#include "shoal/schedule.hpp"
#include "shoal/simulate.hpp"

namespace {

/// Four stages, eight micro-batches: (8 + 4 - 1) turns of 30 ms.
bool simulates() {
  using namespace shoal::core;
  auto plan = make_plan({.name = "1f1b", .ranks = 4, .micro_batches = 8});
  if (!plan || !validate_plan(*plan) || !lower(*plan)) return false;
  simulation_costs costs;
  costs.stages.assign(4, {.forward_ns = 10'000'000, .backward_ns = 20'000'000});
  auto ran = simulate(*plan, costs);
  return ran && ran->pipeline_ns == 11 * 30'000'000ll;
}

bool plans() {
  using namespace shoal::core;
  plan_profile profile;
  for (auto* name : {"a", "b", "c"})
    profile.blocks.push_back({.name = name,
                              .forward = std::chrono::milliseconds(10),
                              .backward = std::chrono::milliseconds(20)});
  auto made = plan(profile, {{.node = {1}}, {.node = {2}}}, {}, job_options());
  return made && nodes_of(made->shape).size() == 2;
}

}  // namespace

int main() {
  shoal::core::job_options job;
  auto failure = shoal::parse_duration("1.5s");
  auto leaf = shoal::core::reduction_leaf(job.training);
  auto sum = shoal::core::tree_sum({4, 1}, {1.0, 2.0, 3.0, 4.0});
  std::printf("leaf %u, sum %g, %s\n", leaf, sum, shoal::text_of(*failure).c_str());
  return failure && leaf == 2 && sum == 10.0 && simulates() && plans() ? 0 : 1;
}
