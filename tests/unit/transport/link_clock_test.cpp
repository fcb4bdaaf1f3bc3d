#include "transport/link_clock.hpp"

#include <catch2/catch.hpp>

using namespace shoal;
using namespace shoal::transport;
using namespace std::chrono_literals;

namespace {
constexpr core::time_point start{100s};
}

TEST_CASE("a link without rate and delay lets everything pass at once", "[transport][link_clock]") {
  link_clock link({}, 0ns);
  for (int i = 0; i < 5; ++i) CHECK(link.put(start, 1 << 30) == passage{start, start});
}

TEST_CASE("frames queue for the link, each for its bytes over the rate",
          "[transport][link_clock]") {
  link_clock link({1e6}, 0ns);
  CHECK(link.put(start, 1000).last == start + 1ms);
  CHECK(link.put(start, 500).last == start + 1500us);
  CHECK(link.put(start + 200us, 1).last == start + 1501us);
}

TEST_CASE("the first byte leaves when the link is free, the last when all have passed",
          "[transport][link_clock]") {
  link_clock link({1e6}, 5ms);
  CHECK(link.put(start, 1000) == passage{start + 5ms, start + 6ms});
  CHECK(link.put(start, 2000) == passage{start + 6ms, start + 8ms});
  CHECK(link.put(start + 1s, 1000) == passage{start + 1005ms, start + 1006ms});
}

TEST_CASE("an idle link does not save up", "[transport][link_clock]") {
  link_clock link({1e6}, 0ns);
  CHECK(link.put(start, 1000).last == start + 1ms);
  CHECK(link.put(start + 10s, 1000).last == start + 10s + 1ms);
}

TEST_CASE("delay moves everything by the same time and does not occupy the link",
          "[transport][link_clock]") {
  link_clock link({1e6}, 50ms);
  CHECK(link.put(start, 1000).last == start + 51ms);
  CHECK(link.put(start, 1000).last == start + 52ms);
  link_clock long_line({}, 50ms);
  CHECK(long_line.put(start, 1 << 30).last == start + 50ms);
  CHECK(long_line.put(start + 1ns, 1).last == start + 50ms + 1ns);
}

TEST_CASE("a link that is cleared is free", "[transport][link_clock]") {
  link_clock link({1e6}, 5ms);
  link.put(start, 1'000'000);
  link.clear();
  CHECK(link.put(start, 1000).last == start + 6ms);
}

TEST_CASE("times never go back, even at absurd rates", "[transport][link_clock]") {
  link_clock link({1e-9}, 1h);
  auto last = start;
  for (int i = 0; i < 100; ++i) {
    auto due = link.put(start + std::chrono::seconds(i), 1ull << 40);
    CHECK(due.first >= last);
    CHECK(due.last >= due.first);
    last = due.last;
  }
}
