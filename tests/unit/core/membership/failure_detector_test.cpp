#include "core/membership/failure_detector.hpp"

#include <catch2/catch.hpp>

using namespace shoal;
using namespace shoal::core;

namespace {

constexpr sender ann{{1}, {1}}, bob{{2}, {1}};

heartbeat beat_of(sender who, std::uint32_t action, activity doing = activity::training) {
  heartbeat b;
  b.from = who;
  b.view = {1};
  b.step = {1};
  b.micro_batch = action;
  b.doing = doing;
  return b;
}

/// A detector with time moved by hand, ticking at its own pace.
struct night_watch {
  failure_detector detector{{.failure = 1000ms, .interval = 200ms, .progress = 3s}};
  time_point now{10s};
  std::uint32_t action = 0;

  std::vector<health_change> pass(nanoseconds duration, std::vector<sender> calling = {},
                                  bool moving = true) {
    std::vector<health_change> all;
    for (auto end = now + duration; now < end;) {
      now += 200ms;
      if (moving) ++action;
      for (auto who : calling) detector.heard(beat_of(who, action), now);
      for (auto& change : detector.tick(now)) all.push_back(change);
    }
    return all;
  }
};

}  // namespace

TEST_CASE("a node that keeps calling and moving stays alive", "[core][membership]") {
  night_watch night;
  REQUIRE(night.detector.watch(ann, night.now));
  CHECK(night.pass(60s, {ann}).empty());
}

TEST_CASE("a silent node is first suspect, then dead, and the others are neither",
          "[core][membership]") {
  night_watch night;
  REQUIRE(night.detector.watch(ann, night.now));
  REQUIRE(night.detector.watch(bob, night.now));
  night.pass(5s, {ann, bob});
  auto changes = night.pass(2s, {bob});
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].now_is == health::suspect);
  CHECK(changes[1].now_is == health::dead);
  CHECK(changes[1].who == ann);
  CHECK(changes[1].reason.find("timeouts.failure") != std::string::npos);
}

TEST_CASE("a suspect that says anything is alive again", "[core][membership]") {
  night_watch night;
  REQUIRE(night.detector.watch(ann, night.now));
  CHECK(night.pass(800ms).back().now_is == health::suspect);
  night.detector.heard(ann, night.now + 100ms);
  night.now += 200ms;
  CHECK(night.detector.tick(night.now).at(0).now_is == health::alive);
}

TEST_CASE("a node that calls but does not move is stuck, and is not when it moves",
          "[core][membership]") {
  night_watch night;
  REQUIRE(night.detector.watch(ann, night.now));
  night.pass(2s, {ann});
  auto changes = night.pass(5s, {ann}, false);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].now_is == health::stuck);
  CHECK(changes[0].reason.find("of step 1") != std::string::npos);
  changes = night.pass(400ms, {ann});
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].now_is == health::alive);
}

TEST_CASE("a node whose steps are long is given more time", "[core][membership]") {
  night_watch night;
  REQUIRE(night.detector.watch(ann, night.now));
  for (int i = 0; i < 60; ++i) {  // one action every two seconds
    CHECK(night.pass(1800ms, {ann}, false).empty());
    night.pass(200ms, {ann});
  }
  CHECK(night.pass(20s, {ann}, false).empty());
}

TEST_CASE("who does not train cannot be stuck", "[core][membership]") {
  night_watch night;
  REQUIRE(night.detector.watch(ann, night.now));
  for (int i = 0; i < 100; ++i) {
    night.now += 200ms;
    night.detector.heard(beat_of(ann, 0, activity::holding), night.now);
    CHECK(night.detector.tick(night.now).empty());
  }
}

TEST_CASE("the watchman's own sleep kills nobody", "[core][membership]") {
  night_watch night;
  REQUIRE(night.detector.watch(ann, night.now));
  night.pass(1s, {ann});
  night.now += 30s;  // no ticks, and heartbeats still in the mailbox
  CHECK(night.detector.tick(night.now).empty());
  CHECK(night.pass(1s, {ann}).empty());
}

TEST_CASE("the dead return only when they are watched anew", "[core][membership]") {
  night_watch night;
  REQUIRE(night.detector.watch(ann, night.now));
  night.pass(2s);
  CHECK(night.pass(1s, {ann}).empty());
  REQUIRE(night.detector.watch(ann, night.now));
  CHECK(night.pass(2s).back().now_is == health::dead);
}

TEST_CASE("a heartbeat from a former life is ignored", "[core][membership]") {
  night_watch night;
  REQUIRE(night.detector.watch({ann.node, {2}}, night.now));
  CHECK(night.pass(2s, {ann}).back().now_is == health::dead);
}

TEST_CASE("no more nodes are watched than allowed", "[core][membership]") {
  failure_detector detector{{.node_count_max = 1}};
  CHECK(detector.watch(ann, time_point{}));
  CHECK_FALSE(detector.watch(bob, time_point{}));
  detector.forget(ann.node);
  CHECK(detector.watch(bob, time_point{}));
}

TEST_CASE("heartbeats come a few times within the failure timeout", "[core][membership]") {
  timeout_options t;
  CHECK(heartbeat_interval(t) == 250ms);
  t.failure = 1ms;
  CHECK(heartbeat_interval(t) == 10ms);
  t.failure = 1h;
  CHECK(heartbeat_interval(t) == 1s);
}
