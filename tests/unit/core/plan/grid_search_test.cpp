#include "core/plan/grid_search.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <iostream>
#include <limits>

#include "base/rng.hpp"
#include "core/plan/grid_cut.hpp"
#include "core/plan/grid_simulate.hpp"
#include "unit/core/plan/grid_cases.hpp"
#include "unit/core/plan/grid_oracle.hpp"

using namespace shoal;
using namespace shoal::core;

namespace {

grid_choice chosen(const grid_request& r) {
  auto made = search_grids(r);
  if (!made) FAIL(made.error().text);
  auto& best = made->best;
  CHECK(best.nodes() <= r.nodes);
  std::uint32_t reached = 0;
  for (auto& range : best.cuts) {
    REQUIRE(range.begin == reached);
    REQUIRE(range.size() > 0);
    reached = range.end;
  }
  REQUIRE(reached == r.profiles[0].profile.blocks.size());
  REQUIRE(best.cuts.size() == best.depth * best.chunks);
  return *std::move(made);
}

error refused(const grid_request& r) {
  auto made = search_grids(r);
  REQUIRE_FALSE(made);
  return made.error();
}

}  // namespace

TEST_CASE("a fast network makes replicas, little memory makes pipelines", "[core][plan][grid]") {
  auto r = request_for(8, 8, 64);
  auto free = chosen(r);
  CHECK(free.best.depth == 1);
  CHECK(free.best.replicas == 8);
  CHECK(free.next.size() == 3);
  CHECK_THAT(free.reason, Catch::StartsWith("best: 8 x 1 stages") && Catch::Contains("next: "));

  // Half a model with its partial sums fits, a whole one does not.
  r.memory_bytes = 350 * mebibyte + 700 * mebibyte;
  r.reserve = 0;
  auto tight = chosen(r);
  CHECK(tight.best.depth > 1);
  CHECK(tight.best.stage_bytes_max <= r.memory_bytes);
}

TEST_CASE("a model that fits nowhere is refused with what is short, and where",
          "[core][plan][grid]") {
  auto r = request_for(8, 4, 64);
  r.memory_bytes = 400 * mebibyte;
  auto e = refused(r);
  CHECK(e.code == errc::no_memory);
  CHECK_THAT(e.text, Catch::Contains("fits nowhere") && Catch::Contains("too little at least") &&
                       Catch::Contains("stage ") && Catch::Contains("blocks ") &&
                       Catch::Contains("after the reserve"));
}

TEST_CASE("memory that only recompute can keep makes stages recompute, and only those",
          "[core][plan][grid]") {
  auto r = request_for(8, 4, 64);
  for (auto& b : r.profiles[0].profile.blocks) b.stash_bytes = 450 * mebibyte;
  r.schedules = {stage_order::one_f_one_b};
  r.depth = 4;
  r.reserve = 0;
  r.memory_bytes = 2000 * mebibyte;
  auto made = chosen(r);
  CHECK(made.best.recompute.front());
  CHECK_FALSE(made.best.recompute.back());
  CHECK(made.best.stage_bytes_max <= r.memory_bytes);
  r.may_recompute = false;
  CHECK(refused(r).code == errc::no_memory);
}

TEST_CASE("requests that nothing can meet are refused with the nearest that can be met",
          "[core][plan][grid]") {
  auto r = request_for(4, 0, 8);
  CHECK(refused(r).code == errc::too_few_nodes);
  r.nodes = 8, r.depth = 5;
  CHECK_THAT(refused(r).text, Catch::Contains("the deepest that is legal is 4"));
  r.depth = 3, r.nodes = 2;
  CHECK(refused(r).code == errc::too_few_nodes);
  r.depth = 0, r.profiles[0].micro_batch_size = 3;
  CHECK_THAT(refused(r).text, Catch::Contains("6 samples would be legal"));
  r.schedules.clear();
  CHECK(refused(r).code == errc::config);
  r.profiles.clear();
  CHECK(refused(r).code == errc::config);
}

TEST_CASE("80 layers on 16 stages of 2 chunks are not silently made 64", "[core][plan][grid]") {
  auto cut = cut_equally(80, 16, 2);
  REQUIRE_FALSE(cut);
  CHECK(cut.error().code == errc::config);
  CHECK_THAT(cut.error().text, Catch::Contains("16 layers would be left out") &&
                                 Catch::Contains("64 or 96 layers") &&
                                 Catch::Contains("chunks = 1") && Catch::Contains("stages = 20"));
  CHECK(cut_equally(80, 16, 5)->size() == 80);
  CHECK(cut_equally(96, 16, 2)->back() == index_range{93, 96});
  CHECK_FALSE(cut_equally(3, 4, 1));
  CHECK_FALSE(cut_equally(3, 0, 1));
  // The search itself cuts unequally, and drops nothing.
  auto r = request_for(80, 16, 64);
  r.schedules = {stage_order::interleaved};
  r.chunks_max = 2, r.depth = 16;
  CHECK(chosen(r).best.chunks == 2);
}

TEST_CASE("slow links want eager warm-ups, and the search finds enough of them",
          "[core][plan][grid]") {
  auto r = request_for(8, 8, 64);
  r.depth = 8;
  r.profiles[0].profile.link_latency = 20ms;
  r.simulate = simulated_span;
  auto made = chosen(r);
  auto classic = r;
  classic.schedules = {stage_order::one_f_one_b};
  CHECK(chosen(classic).best.step_s > 1.2 * made.best.step_s);
}

TEST_CASE("nodes with a price are not used for little", "[core][plan][grid]") {
  auto r = request_for(8, 8, 12);
  auto fast = chosen(r);
  r.price_per_hour = 2;
  auto cheap = chosen(r);
  CHECK(cheap.best.nodes() < fast.best.nodes());
  CHECK(cheap.best.score <=
        fast.best.step_s * fast.best.nodes() * r.price_per_hour / 3600 * (1 + 1e-9));
  CHECK_THAT(cheap.reason, Catch::Contains("nodes stay idle"));
}

TEST_CASE("short lives of nodes ask for a second holder of each block", "[core][plan][grid]") {
  auto r = request_for(8, 2, 16);
  r.profiles[0].profile.link_bytes_per_s = 8 * 16.0 * mebibyte / 0.4;  // exchange costs 0.4 s
  auto calm = chosen(r);
  CHECK(calm.best.replicas == 1);
  r.mean_life = 1h;
  r.redone_steps = 10 * 60 / calm.best.step_s;  // a checkpoint every 20 minutes
  auto wild = chosen(r);
  CHECK(wild.best.replicas == 2);
  CHECK_THAT(wild.reason, Catch::Contains("lost to nodes that hold blocks alone"));
}

TEST_CASE("the layout in force is kept while moving costs more than it brings",
          "[core][plan][grid]") {
  auto r = request_for(9, 2, 64);
  r.depth = 2;
  r.profiles[0].profile.link_latency = 0ns;
  r.profiles[0].profile.link_bytes_per_s = 0;
  auto fresh = chosen(r).best;
  // Both cuts of nine equal blocks are as good; the one in force needs no move.
  for (std::uint32_t border : {4u, 5u}) {
    r.present = present_grid{1, {{0, border}, {border, 9}}};
    CHECK(chosen(r).best.cuts == r.present->cuts);
    CHECK(chosen(r).best.step_s == Approx(fresh.step_s));
  }
}

TEST_CASE("the search is within a percent of simulating everything", "[core][plan][grid]") {
  constexpr std::uint64_t seed = 31;
  std::cout << "grid_search_test: seed " << seed << "\n";
  rng random(seed);
  // Judged by a plain simulator, and by the one that the search has in a running job.
  for (auto simulate : {simulated_span, simulated_seconds})
    for (int i = 0; i < 200; ++i) {
      auto r = random_request(random);
      r.simulate = simulate;
      auto best = exhaustive_best(r);
      auto made = search_grids(r);
      REQUIRE(bool(made) == (best < std::numeric_limits<double>::infinity()));
      if (!made) continue;
      CAPTURE(i, made->reason, best, r.nodes, r.samples);
      CHECK(made->best.step_s <= best * 1.01);
    }
}
