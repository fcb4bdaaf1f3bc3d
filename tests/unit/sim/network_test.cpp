#include "sim/network.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

using namespace shoal;
using namespace shoal::sim;

namespace {

struct lab {
  event_loop loop;
  rng random{7};
  network net{loop, random, {.late_share = 0.3}};
  std::vector<int> seen;

  void send(int what, int from = 1, int to = 2) {
    net.send(from, to, [this, what] { seen.push_back(what); });
  }
  void pass(nanoseconds time) {
    for (auto end = loop.now() + time; loop.run_next(end);) {
    }
  }
};

struct worker : process {
  using process::process;
  void end() { die(); }
};

}  // namespace

TEST_CASE("tasks run in order of time, then of when they were asked for", "[sim]") {
  lab l;
  for (int i : {3, 1, 2})
    l.loop.after(std::chrono::milliseconds(i), [&l, i] { l.seen.push_back(i); });
  l.loop.after(1ms, [&l] { l.seen.push_back(10); });
  l.pass(10ms);
  CHECK(l.seen == std::vector{1, 10, 2, 3});
}

TEST_CASE("a wire keeps the order, however late a message is", "[sim]") {
  lab l;
  for (int i = 0; i < 50; ++i) l.send(i);
  l.pass(10s);
  REQUIRE(l.seen.size() == 50);
  CHECK(std::is_sorted(l.seen.begin(), l.seen.end()));
}

TEST_CASE("a cut wire holds messages back until it heals, in order", "[sim]") {
  lab l;
  l.send(1);
  l.net.cut(2, 1);
  CHECK(l.net.is_cut(1, 2));
  l.send(2);
  l.send(9, 1, 3);
  l.pass(10s);
  CHECK(l.seen.size() == 2);
  l.net.heal(1, 2);
  l.send(3);
  l.pass(10s);
  CHECK((l.seen.size() == 4 && l.seen[2] == 2 && l.seen[3] == 3));
}

TEST_CASE("a frozen process does everything after its thaw, a dead one nothing", "[sim]") {
  lab l;
  worker w(l.loop), dead(l.loop);
  w.freeze();
  w.run([&] { l.seen.push_back(1); });
  w.later(1ms, [&] { l.seen.push_back(2); });
  dead.later(1ms, [&] { l.seen.push_back(3); });
  dead.end();
  l.pass(10ms);
  CHECK(l.seen.empty());
  w.thaw();
  CHECK(l.seen == std::vector{1, 2});
}
