#include "core/plan/link_figures.hpp"

#include <limits>

#include <catch2/catch.hpp>

using namespace shoal;
using namespace shoal::core;
using std::chrono::nanoseconds;

namespace {

std::uint64_t median_rate(const std::vector<std::uint64_t>& rates) {
  std::vector<link_figures> links;
  for (auto rate : rates) links.push_back({rate, 5'000});
  auto median = median_of(links);
  CHECK(median.one_way_ns == (rates.empty() ? 0 : 5'000));
  return median.bytes_per_s;
}

std::uint64_t median_way(const std::vector<std::uint64_t>& ways_ns) {
  std::vector<peer_link> links;
  for (auto ns : ways_ns) links.push_back({node_id{links.size() + 1}, {0, ns}});
  auto median = median_of(links);
  CHECK(median.bytes_per_s == 0);
  return median.one_way_ns;
}

constexpr auto absurd = std::numeric_limits<std::uint64_t>::max();

}  // namespace

TEST_CASE(
  "the median of links is of each figure one of theirs, and what cannot be true has no voice",
  "[core][plan]") {
  CHECK(median_rate({}) == 0);
  CHECK(median_rate({5'000}) == 5'000);
  CHECK(median_rate({30'000, 10'000, 20'000}) == 20'000);
  CHECK(median_rate({40'000, 10'000, 20'000, 30'000}) == 20'000);
  CHECK(median_rate({0, 999, absurd, 7'000, link_rate_max + 1}) == 7'000);
  CHECK(median_rate({0, absurd}) == 0);
  CHECK(median_way({}) == 0);
  CHECK(median_way({3'000'000, 1'000, 2'000}) == 2'000);
  CHECK(median_way({0, 999, absurd, 7'000, link_one_way_max_ns + 1}) == 7'000);
  CHECK(median_way({0, absurd}) == 0);
  CHECK(median_of(std::vector<link_figures>{{3'000, 0}, {0, 9'000}, {4'000, absurd}}) ==
        link_figures{3'000, 9'000});
}

TEST_CASE("a liar among five nodes does not move the median beyond the others", "[core][plan]") {
  for (auto lie : {link_rate_min, link_rate_max}) {
    auto median = median_rate({11'000, 12'000, 13'000, 14'000, lie});
    CHECK(median >= 11'000);
    CHECK(median <= 14'000);
  }
  for (auto lie : {link_one_way_min_ns, link_one_way_max_ns}) {
    auto median = median_way({11'000, 12'000, 13'000, 14'000, lie});
    CHECK(median >= 11'000);
    CHECK(median <= 14'000);
  }
}

TEST_CASE("a measured rate is taken in by a quarter of its time, and reached in the end",
          "[core][plan]") {
  // 1 s a GB known, 5 s measured: 2 s.
  CHECK(refined_rate(1e9, 200'000'000) == Approx(0.5e9));
  double known = 1e9;
  for (int round = 0; round < 30; ++round) known = refined_rate(known, 12'500'000);
  CHECK(known == Approx(12.5e6).epsilon(0.001));
  for (int round = 0; round < 60; ++round) known = refined_rate(known, 1'000'000'000);
  CHECK(known == Approx(1e9).epsilon(0.001));
}

TEST_CASE("what cannot be a rate changes nothing, and a free link takes what was measured",
          "[core][plan]") {
  for (std::uint64_t wrong : {std::uint64_t{0}, std::uint64_t{999}, link_rate_max + 1})
    CHECK(refined_rate(3e8, wrong) == 3e8);
  CHECK(refined_rate(0, 5'000'000) == 5e6);
  CHECK(refined_rate(std::numeric_limits<double>::infinity(), 5'000'000) == 5e6);
}

TEST_CASE("a measured way is taken in by a quarter with the handling of frames, and reached",
          "[core][plan]") {
  CHECK(refined_latency(nanoseconds(100'000), 70'000) == nanoseconds(100'000));
  CHECK(refined_latency(nanoseconds(100'000), 1'070'000) == nanoseconds(350'000));
  nanoseconds known{100'000};
  for (int round = 0; round < 80; ++round) known = refined_latency(known, 5'000'000);
  CHECK(known.count() == Approx(5'030'000).epsilon(0.001));
  for (auto wrong : {std::uint64_t{0}, std::uint64_t{999}, link_one_way_max_ns + 1, absurd})
    CHECK(refined_latency(known, wrong) == known);
}
