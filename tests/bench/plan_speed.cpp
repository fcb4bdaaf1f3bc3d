// What `./dev bench plan-speed` runs: how long plans take, how fast the simulator is, and how far
// the search is from trying everything. Times are the processor's own, of one core: others may be
// busy on the machine. Each is the least of a few runs.

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <limits>

#include "core/pipeline/simulation.hpp"
#include "core/plan/grid_simulate.hpp"
#include "core/schedule/make_plan.hpp"
#include "unit/core/plan/grid_cases.hpp"

using namespace shoal;
using namespace shoal::core;

namespace {

constexpr int runs = 5;
constexpr int cases = 200;

double seconds_of(const std::function<void()>& work) {
  auto least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < runs; ++i) {
    auto begin = std::clock();
    work();
    least = std::min(least, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return least;
}

[[noreturn]] void fail(const error& e) {
  std::fprintf(stderr, "plan_speed: %s\n", e.text.c_str());
  std::exit(1);
}

double many_nodes_s() {
  auto request = large_request();
  request.simulate = simulated_seconds;
  return seconds_of([&] {
    if (auto made = search_grids(request); !made) fail(made.error());
  });
}

/// 48 blocks on 64 nodes of mixed speeds, then without two of them; `memory_bytes` a node, 0: any.
double nodes_64_s(const char* schedule, std::uint64_t memory_bytes) {
  plan_profile profile = equal_blocks(48).profile;
  job_options job;
  job.training.micro_batches = 256;
  job.parallelism.schedule = schedule;
  std::vector<plan_node> nodes;
  rng random(41);
  for (std::uint64_t n = 1; n <= 64; ++n)
    nodes.push_back({{n}, random.below(2) == 0 ? 1 : 0.5 + random.uniform(), memory_bytes});
  auto fresh = plan(profile, nodes, {}, job);
  if (!fresh) fail(fresh.error());
  auto left = nodes;
  std::erase_if(left, [](auto& n) { return n.node.value == 7 || n.node.value == 40; });
  auto at_first = seconds_of([&] { (void)plan(profile, nodes, {}, job); });
  auto after_loss = seconds_of([&] { (void)plan(profile, left, fresh->shape, job); });
  return std::max(at_first, after_loss);
}

double events_per_s() {
  auto plan = make_plan({.name = "1f1b", .ranks = 16, .micro_batches = 512});
  if (!plan) fail(plan.error());
  simulation_costs costs;
  costs.stages.assign(
    16, {.forward_ns = 10'000'000, .backward_ns = 20'000'000, .input_bytes = 1 << 20});
  costs.link = link_table::flat(100'000, 1e9);
  double events = 0;
  auto seconds = seconds_of([&] {
    events = 0;
    for (int i = 0; i < 20; ++i) {
      auto ran = simulate(*plan, costs);
      if (!ran) fail(ran.error());
      events += static_cast<double>(ran->events);
    }
  });
  return events / seconds;
}

double worst_gap() {
  rng random(31);
  double worst = 0;
  for (int i = 0; i < cases; ++i) {
    auto request = random_request(random);
    request.simulate = simulated_seconds;
    auto best = exhaustive_best(request);
    auto made = search_grids(request);
    if (made) worst = std::max(worst, made->best.step_s / best - 1);
  }
  return worst;
}

}  // namespace

int main() {
  constexpr std::uint64_t tight = 8ull << 30;
  std::printf(
    "{\"bench\": \"plan-speed\", \"gpus_10000_ms\": %.1f, \"nodes_64_ms\": %.2f, "
    "\"nodes_64_tight_memory_ms\": %.2f, \"nodes_64_all_orders_ms\": %.2f, "
    "\"events_per_s\": %.3g, \"worst_gap\": %.4f}\n",
    many_nodes_s() * 1e3, nodes_64_s("1f1b", 0) * 1e3, nodes_64_s("1f1b", tight) * 1e3,
    nodes_64_s("auto", 0) * 1e3, events_per_s(), worst_gap());
}
