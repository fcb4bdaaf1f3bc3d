#include "core/morph/morph_clock.hpp"

#include <catch2/catch.hpp>

using namespace shoal;
using namespace shoal::core;

namespace {

time_point at(int ms) { return time_point{std::chrono::milliseconds(1000 + ms)}; }

/// Steps of 100 ms, 1 to `last`.
morph_clock trained_until(int last) {
  morph_clock clock;
  clock.begin(at(0), {}, false);
  clock.agreed(at(0), {0}, 0, 3);
  clock.committed(at(0));
  for (int s = 1; s <= last; ++s) {
    auto timing = clock.decided(at(100 * s), {static_cast<std::uint64_t>(s)});
    CHECK_FALSE(timing);  // the beginning is no morph
  }
  return clock;
}

}  // namespace

TEST_CASE("the parts of a pause are in their order and add up", "[core][morph]") {
  auto clock = trained_until(5);
  clock.lost();
  clock.begin(at(560), at(530), false);  // decided at 500, the next would have come at 600
  clock.agreed(at(600), {5}, 4, 1);
  clock.connected(at(610));
  clock.committed(at(650));
  auto timing = clock.decided(at(760), {6});
  REQUIRE(timing);
  CHECK(timing->detect == 30ms);
  CHECK(timing->agree == 40ms);
  CHECK(timing->rewire == 10ms);
  CHECK(timing->move == 40ms);
  CHECK(timing->redo == 10ms);    // 110 ms since the commit, less a step of 100 ms
  CHECK(timing->pause == 160ms);  // 260 ms from step 5 to step 6, less a step
  CHECK(timing->lost == 1);
  CHECK(timing->joined == 1);
  CHECK(timing->moved_blocks == 4);
  CHECK_FALSE(timing->planned);
}

TEST_CASE("a morph ends only beyond the last decided step", "[core][morph]") {
  auto clock = trained_until(5);
  clock.begin(at(510), {}, false);
  clock.agreed(at(520), {3}, 0, 0);
  clock.committed(at(530));
  CHECK_FALSE(clock.decided(at(630), {4}));
  CHECK_FALSE(clock.decided(at(730), {5}));
  auto timing = clock.decided(at(830), {6});
  REQUIRE(timing);
  CHECK(timing->redo == 200ms);
  CHECK(timing->from == step_id{3});
}

TEST_CASE("a loss on top of a planned change makes it a loss, from the first beginning",
          "[core][morph]") {
  auto clock = trained_until(5);
  clock.begin(at(510), {}, true);
  clock.begin(at(540), at(530), false);
  clock.agreed(at(560), {5}, 0, 0);
  clock.committed(at(570));
  auto timing = clock.decided(at(670), {6});
  REQUIRE(timing);
  CHECK_FALSE(timing->planned);
  CHECK(timing->agree == 50ms);
}
