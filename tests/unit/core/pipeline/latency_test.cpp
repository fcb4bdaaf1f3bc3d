// Varuna's latency table and its 20B run (Athlur et al., EuroSys 2022, and its published log).

#include <algorithm>
#include <cstdio>

#include "core/pipeline/search_warm_up.hpp"
#include "unit/core/pipeline/lab.hpp"

namespace shoal::core {

namespace {

struct latency_row {
  double latency, fixed, opportunistic, turns, gpipe;
};
constexpr latency_row table[] = {{0, 276, 274, 275, 276},
                                 {.5, 304, 280, 282, 283},
                                 {1, 332, 287, 343, 290},
                                 {2, 388, 301, 465, 304},
                                 {3, 444, 315, 587, 318}};

double at(const char* name, double latency) {
  auto costs = uniform(8, 1, 2, 1);
  costs.link = link_table::flat(ns(latency), 0);
  bool recompute = std::string(name) == "1f1b" || std::string(name) == "gpipe";
  return span_of({.name = name, .ranks = 8, .micro_batches = 64, .recompute = recompute}, costs);
}

}  // namespace

TEST_CASE("the latency table of Varuna's orders comes out within 1 %", "[core][pipeline]") {
  for (auto& row : table) {
    CAPTURE(row.latency);
    CHECK(at("varuna-static", row.latency) == Approx(row.fixed).epsilon(.01));
    CHECK(at("varuna", row.latency) == Approx(row.opportunistic).epsilon(.01));
    CHECK(at("1f1b", row.latency) == Approx(row.turns).epsilon(.01));
    CHECK(at("gpipe", row.latency) == Approx(row.gpipe).epsilon(.01));
  }
}

TEST_CASE("the searched schedule is as fast as any, with less held than GPipe",
          "[core][pipeline]") {
  for (auto& row : table) {
    CAPTURE(row.latency);
    auto costs = uniform(8, 1, 2, 1);
    costs.link = link_table::flat(ns(row.latency), 0);
    auto found = search_warm_up(costs, {.micro_batches = 64, .recompute = true});
    REQUIRE(found);
    auto span = static_cast<double>(found->expected.makespan_ns) / unit;
    std::printf("latency %.1f: searched %.0f, %u simulations, rank 0 holds %u\n", row.latency, span,
                found->tried, found->expected.replicas[0][0].live_peak);
    for (auto name : {"varuna-static", "varuna", "1f1b", "gpipe"}) {
      CAPTURE(name);
      CHECK(span <= at(name, row.latency));
    }
    CHECK(found->expected.replicas[0][0].live_peak < 64);
  }
}

namespace {

/// The means of the logged run, its 10 ms a micro-batch that no kernel explains spread evenly.
simulation_costs twenty_billion(double hop_ms) {
  simulation_costs c;
  double each = 10.0 / 3;
  c.stages.assign(
    49,
    {.forward_ns = ns(40.5 + each), .backward_ns = ns(74 + each), .recompute_ns = ns(40.1 + each)});
  c.stages.front() = {
    .forward_ns = ns(23.2 + each), .backward_ns = ns(38.9 + each), .recompute_ns = ns(21.9 + each)};
  c.stages.back() = {.forward_ns = ns(39.9 + each), .backward_ns = ns(64.9 + each)};
  c.link = link_table::flat(ns(hop_ms), 0);
  return c;
}

}  // namespace

TEST_CASE("Varuna's 20B run: time by hop, stash depths", "[core][pipeline]") {
  auto plan = made({.name = "varuna-static", .ranks = 49, .micro_batches = 683});
  auto window = made({.name = "varuna", .ranks = 49, .micro_batches = 683});
  struct row {
    double hop_ms, fixed_s, opportunistic_s;
    double within;
  };
  // The row of 50 ms was simulated with the times of each stage, which are not published.
  for (auto& row :
       {row{0, 118.1, 118.1, .01}, row{20, 124.6, 119.9, .01}, row{25, 127.4, 120.4, .01},
        row{30, 130.1, 120.9, .01}, row{50, 141.7, 124.9, .02}}) {
    auto c = twenty_billion(row.hop_ms);
    auto s = run_of(plan, c);
    auto fixed_s = static_cast<double>(s.makespan_ns) / 1e9;
    auto opportunistic_s = static_cast<double>(run_of(window, c).makespan_ns) / 1e9;
    std::printf("20B, hop %2.0f ms: static %.1f s (%.1f), opportunistic %.1f s (%.1f)\n",
                row.hop_ms, fixed_s, row.fixed_s, opportunistic_s, row.opportunistic_s);
    CAPTURE(row.hop_ms);
    CHECK(fixed_s == Approx(row.fixed_s).epsilon(row.within));
    CHECK(opportunistic_s == Approx(row.opportunistic_s).epsilon(row.within));
    CHECK(s.replicas[0][0].live_peak == 144);
    CHECK(s.replicas[0][24].live_peak == 72);
    CHECK(s.replicas[0][47].live_peak == 3);
  }
}

TEST_CASE("Varuna's 20B run: the spans that were logged", "[core][pipeline]") {
  // The hop was not logged: 25 ms fits, and is the one figure calibrated here. A stage's span is
  // taken from the begin of the mini-batch, for all at the same time: stage 47 ends 4.7 s before
  // stage 1, which is the drain alone.
  auto plan = made({.name = "varuna-static", .ranks = 49, .micro_batches = 683});
  auto s = run_of(plan, twenty_billion(25));
  struct row {
    rank_index stage;
    double span_s;
  };
  for (auto [stage, span_s] : {row{1, 128.1}, row{24, 126.2}, row{47, 123.4}}) {
    auto simulated = static_cast<double>(s.replicas[0][stage].last_ns) / 1e9;
    std::printf("20B, stage %2u: span %.1f s, logged %.1f s, %+.1f %%\n", stage, simulated, span_s,
                (simulated / span_s - 1) * 100);
    CAPTURE(stage);
    CHECK(simulated == Approx(span_s).epsilon(.03));
  }
}

}  // namespace shoal::core
