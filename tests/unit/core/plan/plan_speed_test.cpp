// How long a plan for many nodes takes, in the processor's own time: others may be busy here.

#include <ctime>
#include <iostream>

#include "base/rng.hpp"
#include "unit/core/plan/workplace.hpp"

using namespace shoal;
using namespace shoal::core;

TEST_CASE("sixty-four nodes of mixed speeds are planned in five milliseconds",
          "[core][plan][.bench]") {
  workplace large(48);
  large.job.training.micro_batches = 256;
  rng random(41);
  for (int i = 0; i < 64; ++i) large.with(1, random.below(2) == 0 ? 1 : 0.5 + random.uniform());
  auto timed = [](auto& world) {
    auto begin = std::clock();
    auto made = plan(world.profile, world.nodes, world.present, world.job);
    REQUIRE(made);
    world.present = made->shape;
    return 1e3 * double(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  auto first_ms = timed(large);
  large.without(7).without(40);
  auto next_ms = timed(large);
  std::cout << "nodes_64_ms " << first_ms << " at first, " << next_ms << " after a loss\n";
  CHECK(first_ms < 5);
  CHECK(next_ms < 5);
}
