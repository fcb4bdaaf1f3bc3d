// Chains of nodes with memory: their cuts, and the candidates they make together.

#include <catch2/catch.hpp>
#include <limits>

#include "base/rng.hpp"
#include "core/plan/candidate.hpp"
#include "core/plan/chain_cut.hpp"
#include "core/plan/cuts.hpp"
#include "unit/core/every_cut.hpp"
#include "unit/core/plan/workplace.hpp"

using namespace shoal;
using namespace shoal::core;
using namespace shoal::core::planning;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// What the planner says of a workplace's chains.
struct office {
  explicit office(const workplace& place) : job(place.job), cost(place.profile) {}

  job_options job;
  costs cost;
  free_cuts free{cost, job.training.recompute == recompute_rule::always};
  price_list prices{cost, job, {job.training.micro_batches, reduction_leaf(job.training)}, free};
};

workplace random_workplace(rng& random) {
  workplace place(1 + std::uint32_t(random.below(9)));
  for (auto& b : place.profile.blocks) {
    b.forward = std::chrono::microseconds(1 + random.below(10'000));
    b.backward = std::chrono::microseconds(1 + random.below(20'000));
    b.parameter_bytes = random.below(40) * mebibyte;
    b.stash_bytes = (1 + random.below(20)) * mebibyte;
    b.boundary_bytes = b.stash_bytes / 8;
  }
  constexpr recompute_rule rules[] = {recompute_rule::never, recompute_rule::always,
                                      recompute_rule::as_needed};
  place.job.training.recompute = rules[random.below(3)];
  place.job.training.micro_batches = 1 + std::uint32_t(random.below(40));
  return place;
}

std::vector<worker> random_workers(rng& random, std::size_t count, std::uint64_t first = 1) {
  std::vector<worker> workers;
  for (auto n = first; n < first + count; ++n)
    workers.push_back({node_id{n}, random.below(2) == 0 ? 1 : 0.1 + random.uniform(),
                       reserve + random.below(900) * mebibyte});
  return workers;
}

double slowest(const price_list& prices, const chain& one) {
  double worst = 0;
  for (std::size_t s = 0; s < one.blocks.size(); ++s)
    worst = std::max(
      worst, prices.cost.seconds(one.blocks[s], recomputes(prices, one, s)) / one.workers[s].speed);
  return worst;
}

/// The least of all cuts that fit, where every stage that may leaves out recomputing if it can.
double least_slowest(const price_list& prices, chain one, chain_load load) {
  double best = infinite;
  for_each_cut(prices.cost.block_count(), one.stages(), [&](auto& blocks) {
    one.blocks = blocks;
    choose_recompute(prices, one, load);
    if (fits(prices, one, load)) best = std::min(best, slowest(prices, one));
  });
  return best;
}

}  // namespace

TEST_CASE("no cut of a chain that fits has a faster slowest stage", "[core][plan]") {
  rng random(7);
  int fitting = 0, hopeless = 0;
  for (int i = 0; i < 1000; ++i) {
    auto place = random_workplace(random);
    office planner(place);
    chain one;
    one.workers = random_workers(random, 1 + random.below(planner.cost.block_count()));
    chain_load load{1 + std::uint32_t(random.below(20)), 1 + std::uint32_t(random.below(4))};
    auto best = least_slowest(planner.prices, one, load);
    CAPTURE(i, planner.cost.block_count(), one.stages(), load.micro_batches, load.sums);
    REQUIRE(cut(planner.prices, one, load) == (best < infinite));
    best < infinite ? ++fitting : ++hopeless;
    if (best == infinite) continue;
    REQUIRE(fits(planner.prices, one, load));
    REQUIRE(slowest(planner.prices, one) == Approx(best).epsilon(1e-12));
  }
  CHECK(fitting > 100);
  CHECK(hopeless > 100);
}

TEST_CASE("a cut is made once for chains of like speeds", "[core][plan]") {
  workplace place(9);
  for (std::size_t b = 0; b < 9; ++b)
    place.profile.blocks[b].forward = std::chrono::milliseconds(1 + b);
  office planner(place);
  std::vector<double> slow{0.5, 0.25}, fast{2, 1};
  auto& made = planner.free.of(slow, 1);
  REQUIRE(made);
  CHECK(*made == *cut_chunks(9, 2, 1, [&](stage_index s, index_range blocks) {
    return planner.cost.seconds(blocks, false) / slow[s];
  }));
  CHECK(&planner.free.of(fast, 1) == &made);
  CHECK(&planner.free.of(slow, 2) != &made);
  CHECK(planner.free.of(slow, 2)->size() == 4);
  CHECK_FALSE(planner.free.of(slow, 5));
}

TEST_CASE("where sums fill the memory, micro-batches end at leaves", "[core][plan]") {
  workplace place(2);
  place.job.training.micro_batches = 16;
  place.job.training.reduction_leaf = 4;
  office planner(place);
  // 9 and 7 would end sooner than 8 and 8, but 7 begin inside a leaf.
  auto shared = [&](std::uint64_t memory_bytes) {
    auto made =
      build(planner.prices, {{{node_id{1}, 1, memory_bytes}}, {{node_id{2}, 0.8, memory_bytes}}});
    REQUIRE(made);
    CHECK(fits(planner.prices, *made));
    return std::pair(made->chains[0].micro_batches.size(), made->chains[1].micro_batches.size());
  };
  auto on_leaves = planner.cost.needed_bytes(planner.cost.all_blocks(), 1, 2, false);
  CHECK(shared(UINT64_MAX) == std::pair(9u, 7u));
  CHECK(shared(2 * on_leaves) == std::pair(9u, 7u));
  CHECK(shared(on_leaves) == std::pair(8u, 8u));
  CHECK_FALSE(
    build(planner.prices, {{{node_id{1}, 1, on_leaves - 1}}, {{node_id{2}, 0.8, on_leaves - 1}}}));
}

TEST_CASE("what is built fits, however tight", "[core][plan]") {
  rng random(8);
  int made = 0;
  for (int i = 0; i < 1000; ++i) {
    auto place = random_workplace(random);
    constexpr const char* orders[] = {"1f1b", "1f1b-eager", "gpipe", "interleaved-1f1b"};
    place.job.parallelism.schedule = orders[random.below(4)];
    office planner(place);
    std::vector<std::vector<worker>> chains;
    for (std::uint64_t replicas = 1 + random.below(4), first = 1; replicas > 0; --replicas) {
      auto depth = 1 + random.below(planner.cost.block_count());
      chains.push_back(random_workers(random, depth, first));
      first += depth;
    }
    auto built = build(planner.prices, chains);
    if (!built) continue;
    ++made;
    CAPTURE(i);
    REQUIRE(fits(planner.prices, *built));
    REQUIRE(check(built->shape(), planner.cost.block_count(), place.job.training.micro_batches,
                  errc::internal));
  }
  CHECK(made > 100);
}
