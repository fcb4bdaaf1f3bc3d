// What a network, a machine and several replicas add to the schedule, each in a case that can be
// worked out by hand.

#include <array>

#include "core/pipeline/simulation.hpp"
#include "unit/core/pipeline/lab.hpp"

using namespace shoal;
using namespace shoal::core;

namespace {

/// Two stages, one message of a unit each way for each micro-batch.
simulation_costs two_stages_apart(double message, double latency = 0) {
  auto costs = uniform(2, 1, 1);
  costs.stages[1].input_bytes = 1000;
  costs.link = link_table::flat(ns(latency), 1000 / (message * unit / 1e9));
  return costs;
}

double span(const pipeline_plan& plan, const simulation_costs& costs) {
  return static_cast<double>(run_of(plan, costs).pipeline_ns) / unit;
}

std::string refusal(const pipeline_plan& plan, const simulation_costs& costs) {
  auto s = simulate(plan, costs);
  REQUIRE_FALSE(s);
  CHECK(s.error().code == errc::config);
  return s.error().text;
}

}  // namespace

TEST_CASE("one line for both ways makes messages wait for each other", "[core][pipeline]") {
  // Far enough ahead that forwards go down while backwards come up, on a link that is the limit.
  auto plan = made({.name = "1f1b-eager", .ranks = 2, .micro_batches = 8});
  auto costs = two_stages_apart(2);
  auto both = span(plan, costs);
  costs.half_duplex = true;
  CHECK(span(plan, costs) > both);
  // With nothing on the way back at the same time it does not matter.
  auto alone = made({.name = "gpipe", .ranks = 2, .micro_batches = 1});
  CHECK(span(alone, costs) == 1 + 2 + 1 + 1 + 2 + 1);
}

TEST_CASE("a rank that must hold still while it sends computes later", "[core][pipeline]") {
  auto plan = made({.name = "gpipe", .ranks = 2, .micro_batches = 4});
  auto costs = two_stages_apart(0.5);
  CHECK(span(plan, costs) == 1 + 0.5 + 4 + 4 + 0.5 + 1);
  costs.blocking_sends = true;  // F0 ends at 1, F1 begins at 1.5, ...: each turn takes 1.5
  CHECK(span(plan, costs) == 4 * 1.5 + 1 + 4 * 1.5 + 1);
}

TEST_CASE("ranks of one machine share its card by equal parts", "[core][pipeline]") {
  // Stages 0 and 1 of both chains... two ranks on machine 0 send to machine 1 at the same moment.
  auto plan = made({.name = "gpipe", .ranks = 2, .micro_batches = 1});
  auto costs = two_stages_apart(2);
  costs.machines = {0, 1};
  costs.card_bytes_per_s = 1000 / (2 * unit / 1e9);
  auto alone = run_of(plan, costs).pipeline_ns;
  CHECK(alone == ns(1 + 2 + 1 + 1 + 2 + 1));
  // Two replicas on the same two machines: each message takes twice as long.
  std::array<replica_input, 2> both{{{&plan, &costs}, {&plan, &costs}}};
  auto step = simulate_step(both, {});
  REQUIRE(step);
  CHECK(step->pipeline_ns == ns(1 + 4 + 1 + 1 + 4 + 1));
  // On machines of their own they do not meet.
  auto elsewhere = costs;
  elsewhere.machines = {2, 3};
  both[1].costs = &elsewhere;
  CHECK(simulate_step(both, {})->pipeline_ns == alone);
}

TEST_CASE("a slow rank, an overhead and an overlap change the times of cells", "[core][pipeline]") {
  auto plan = made({.name = "gpipe", .ranks = 2, .micro_batches = 3});
  auto costs = uniform(2, 1, 2);
  costs.speeds = {1, 0.5};
  CHECK(span(plan, costs) == 1 + 3 * 2 + 3 * 4 + 2);
  costs.speeds.clear();
  costs.cell_overhead_ns = ns(0.5);
  CHECK(span(plan, costs) == (3 + 1) * (1 + 2 + 1.0));
  auto pairs = made({.name = "dualpipe", .ranks = 4, .micro_batches = 8});
  auto of = uniform(4, 1, 2, 0, 1, 1);
  auto apart = span(pairs, of);
  of.overlap = 0.75;
  CHECK(span(pairs, of) < apart);
}

TEST_CASE("jitter is the same for the same seed, slows down, and depends on the cell alone",
          "[core][pipeline]") {
  auto plan = made({.name = "1f1b", .ranks = 4, .micro_batches = 16});
  auto costs = uniform(4, 1, 2);
  auto calm = span(plan, costs);
  costs.jitter = 0.2;
  costs.seed = 7;
  auto once = span(plan, costs);
  CHECK(once > calm);
  CHECK(once <= calm * 1.2);
  CHECK(span(plan, costs) == once);
  costs.seed = 8;
  CHECK(span(plan, costs) != once);
}

TEST_CASE("a recompute that waits for its gradient leaves the time before it unused",
          "[core][pipeline]") {
  auto plan = made({.name = "1f1b", .ranks = 4, .micro_batches = 8, .recompute = true});
  auto costs = uniform(4, 1, 2, 1);
  auto early = span(plan, costs);
  costs.recompute_waits = true;
  CHECK(span(plan, costs) > early);
}

TEST_CASE("a rank runs ahead of its list no further than its memory allows", "[core][pipeline]") {
  auto plan = made({.name = "varuna", .ranks = 4, .micro_batches = 24});
  auto costs = uniform(4, 1, 2, 1);
  costs.link = link_table::flat(ns(4), 0);
  auto free = run_of(plan, costs);
  CHECK(free.replicas[0][1].live_peak > 8);
  costs.live_max = {24, 8, 8, 8};
  auto tight = run_of(plan, costs);
  CHECK(tight.replicas[0][0].live_peak > 8);
  CHECK(tight.replicas[0][1].live_peak <= 8);
  CHECK(tight.makespan_ns > free.makespan_ns);
  costs.live_max = {8};
  CHECK_THAT(refusal(plan, costs), Catch::Contains("1 limits of micro-batches for 4 ranks"));
}

TEST_CASE("gradients are exchanged beside the drain, but for the first stage", "[core][pipeline]") {
  auto plan = made({.name = "1f1b", .ranks = 2, .micro_batches = 4});
  auto costs = uniform(2, 1, 2);
  for (auto& s : costs.stages) s.parameter_bytes = 1'000'000, s.optimizer_ns = ns(0.25);
  std::array<replica_input, 2> both{{{&plan, &costs}, {&plan, &costs}}};
  reduction_costs sums{.kind = reduction_kind::ring, .link = link_table::flat(0, 1e9)};
  auto step = simulate_step(both, sums);
  REQUIRE(step);
  // A ring of two moves 2 (k-1)/k n = n bytes: 1 ms. The second stage's hides behind B3 of the
  // first.
  CHECK(step->pipeline_ns == ns((4 + 2 - 1) * 3));
  CHECK(step->exposed_reduction_ns == ns(1));
  CHECK(step->makespan_ns == ns(15 + 1 + 0.25));
  sums.kind = reduction_kind::partial_sums;
  sums.pieces = 3;  // (k-1)/k n (3+1) = 2 n
  sums.norm_ns = ns(0.5);
  sums.step_overhead_ns = ns(0.125);
  step = simulate_step(both, sums);
  REQUIRE(step);
  CHECK(step->exposed_reduction_ns == ns(2));
  CHECK(step->makespan_ns == ns(15 + 2 + 0.5 + 0.25 + 0.125));
}

TEST_CASE("a stage on two ranks is summed between them and updated on both", "[core][pipeline]") {
  // rank 0:  0F0 1F1 1B1 0B0     stage 1 has its gradients at 4, stage 0 at 6, on both ranks
  // rank 1:  0F1 1F0 1B0 0B1
  auto plan = made({.name = "chimera", .ranks = 2, .micro_batches = 2});
  auto costs = uniform(2, 1, 2);
  costs.link = link_table::flat(0, 1e9);
  for (auto& s : costs.stages) s.parameter_bytes = 1'000'000, s.optimizer_ns = ns(0.25);
  auto step = run_of(plan, costs);
  // A ring of two moves n bytes each way: 1 ms. Stage 1's hides behind the last backward.
  CHECK(step.pipeline_ns == ns(6));
  CHECK(step.exposed_reduction_ns == ns(1));
  CHECK(step.makespan_ns == ns(6 + 1 + 2 * 0.25));
  costs.half_duplex = true;  // both ways share the line: stage 1's ends at 6
  CHECK(run_of(plan, costs).makespan_ns == ns(6 + 2 + 2 * 0.25));
  costs.half_duplex = false;
  costs.others = {{1, 0, link_table::flat(0, 0.25e9)}};  // the slower way decides
  CHECK(run_of(plan, costs).makespan_ns == ns(4 + 4 + 4 + 2 * 0.25));
  costs.others.clear();
  // Of two replicas, each copy exchanges half of the stage: 0.5 ms more.
  std::array<replica_input, 2> both{{{&plan, &costs}, {&plan, &costs}}};
  auto two = simulate_step(both, {.link = link_table::flat(0, 1e9)});
  REQUIRE(two);
  CHECK(two->makespan_ns == ns(6 + 1 + 0.5 + 2 * 0.25));
  // Beside a replica of one rank, that one has the whole stage to exchange.
  auto flat = made({.name = "1f1b", .ranks = 1, .micro_batches = 1});
  auto flat_costs = uniform(1, 1, 2);
  flat_costs.stages[0].parameter_bytes = 2'000'000;
  both[1] = {&flat, &flat_costs};
  two = simulate_step(both, {.link = link_table::flat(0, 1e9)});
  REQUIRE(two);
  CHECK(two->makespan_ns == ns(6 + 1 + 1 + 2 * 0.25));
}

TEST_CASE("gradients of equal replicas wait for the last of them", "[core][pipeline]") {
  std::vector<pipeline_plan> plans;
  for (std::uint32_t m : {3u, 1u, 2u})
    plans.push_back(made({.name = "1f1b", .ranks = 1, .micro_batches = m}));
  auto costs = uniform(1, 1, 2);
  costs.stages[0].parameter_bytes = 3'000'000;
  std::vector<replica_input> three;
  for (auto& p : plans) three.push_back({&p, &costs});
  auto step = simulate_step(three, {.link = link_table::flat(0, 1e9)});
  REQUIRE(step);
  CHECK(step->makespan_ns == ns(9 + 4));  // a ring of three: 4/3 of 3 ms
  for (std::uint32_t r : {0u, 1u, 2u})
    CHECK(step->replicas[r][0].last_ns == ns(3 * (r == 0 ? 3 : r)));
}

TEST_CASE("replicas of different depth end when the slower has summed", "[core][pipeline]") {
  auto deep = made({.name = "1f1b", .ranks = 2, .micro_batches = 4});
  auto flat = made({.name = "1f1b", .ranks = 1, .micro_batches = 2});
  auto deep_costs = uniform(2, 1, 2), flat_costs = uniform(1, 2, 4);
  deep_costs.stages[0].parameter_bytes = 1'000'000;
  deep_costs.stages[1].parameter_bytes = 3'000'000;
  flat_costs.stages[0].parameter_bytes = 4'000'000;
  std::array<replica_input, 2> both{{{&deep, &deep_costs}, {&flat, &flat_costs}}};
  reduction_costs sums{.link = link_table::flat(0, 1e9)};
  auto step = simulate_step(both, sums);
  REQUIRE(step);
  CHECK(step->pipeline_ns == ns(15));
  // The flat one is done at 12; the deep one's last stage at 13 exchanges 3 ms, to 16, then 1 ms.
  CHECK(step->makespan_ns == ns(17));
  flat_costs.stages[0].parameter_bytes = 1;
  auto other = simulate_step(both, sums);
  REQUIRE_FALSE(other);
  CHECK_THAT(other.error().text, Catch::Contains("expected the same model"));
}

TEST_CASE("a link's rate follows the logarithm of the size between two points",
          "[core][pipeline]") {
  link_table table{{{1 << 10, 100, 1e6}, {1 << 20, 300, 4e6}}};
  REQUIRE(check(table));
  CHECK(table.latency_ns(1) == 100);
  CHECK(table.latency_ns(1 << 15) == 200);
  CHECK(table.latency_ns(1 << 30) == 300);
  CHECK(table.bytes_per_s(1 << 15) == Approx(2e6));
  CHECK(table.occupancy_ns(1 << 10) == 1'024'000);
  CHECK(link_table{}.occupancy_ns(1 << 20) == 0);
  CHECK_FALSE(check(link_table{{{2, 0, 1e6}, {1, 0, 1e6}}}));
  CHECK_FALSE(check(link_table{{{1, -1, 1e6}}}));
  CHECK_FALSE(check(link_table{{{1, 0, -1}}}));
}

TEST_CASE("costs that do not fit, and orders that wait for themselves, are told",
          "[core][pipeline]") {
  auto plan = made({.name = "1f1b", .ranks = 2, .micro_batches = 2});
  CHECK_THAT(refusal(plan, uniform(3, 1, 1)), Catch::Contains("costs of 3 stages; the plan has 2"));
  auto costs = uniform(2, 1, 1);
  costs.speeds = {1};
  CHECK_THAT(refusal(plan, costs), Catch::Contains("1 speeds for 2 ranks"));
  costs.speeds = {1, 0};
  CHECK_THAT(refusal(plan, costs), Catch::Contains("speed"));
  costs.speeds.clear();
  costs.stages[1].backward_ns = -1;
  CHECK_THAT(refusal(plan, costs), Catch::Contains("stage 1: a time of -1 ns"));
  costs = uniform(2, 1, 1);
  costs.others = {{.from = 0, .to = 2}};
  CHECK_THAT(refusal(plan, costs), Catch::Contains("rank 0 to 2"));
  auto crossed = plan;
  std::swap(crossed.ranks[0][0], crossed.ranks[0][2]);  // B0 before its F0
  CHECK_FALSE(simulate(crossed, uniform(2, 1, 1)));
  // Rank 1 wants F1 first, rank 0 gives F1 only after B0.
  auto waiting = made({.name = "1f1b", .ranks = 2, .micro_batches = 2, .warm_up = {0, 0}});
  waiting.ranks[1] = {{operation::forward, 1, 1},
                      {operation::backward, 1, 1},
                      {operation::forward, 1, 0},
                      {operation::backward, 1, 0}};
  CHECK_THAT(refusal(waiting, uniform(2, 1, 1)), Catch::Contains("the order waits for itself"));
}

TEST_CASE("T11: with replicated stages the slowest stage by its ranks sets the period",
          "[core][pipeline]") {
  auto period = [](std::vector<std::uint32_t> replicas, std::vector<double> both) {
    std::uint32_t ranks = 0;
    for (auto r : replicas) ranks += r;
    auto at = [&](std::uint32_t m) {
      auto plan =
        made({.name = "pipedream", .ranks = ranks, .micro_batches = m, .replicas = replicas});
      simulation_costs costs;
      for (auto b : both)
        costs.stages.push_back({.forward_ns = ns(b / 3), .backward_ns = ns(2 * b / 3)});
      return span(plan, costs);
    };
    return (at(360) - at(180)) / 180;
  };
  CHECK(period({3, 1}, {9, 3}) == Approx(3).epsilon(0.001));
  CHECK(period({2, 1, 1}, {6, 3, 3}) == Approx(3).epsilon(0.001));
  CHECK(period({15, 1}, {45, 3}) == Approx(3).epsilon(0.001));
  CHECK(period({2, 1}, {6, 3.3}) == Approx(3.3).epsilon(0.001));
}
