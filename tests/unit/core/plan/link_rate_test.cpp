#include "core/plan/link_rate.hpp"

#include <limits>

#include <catch2/catch.hpp>

using namespace shoal;
using namespace shoal::core;

TEST_CASE("the median of rates is one of them, and what cannot be true has no voice",
          "[core][plan]") {
  CHECK(median_rate(std::vector<std::uint64_t>{}) == 0);
  CHECK(median_rate(std::vector<std::uint64_t>{5'000}) == 5'000);
  CHECK(median_rate(std::vector<std::uint64_t>{30'000, 10'000, 20'000}) == 20'000);
  CHECK(median_rate(std::vector<std::uint64_t>{40'000, 10'000, 20'000, 30'000}) == 20'000);
  auto absurd = std::numeric_limits<std::uint64_t>::max();
  CHECK(median_rate(std::vector<std::uint64_t>{0, 999, absurd, 7'000, link_rate_max + 1}) == 7'000);
  CHECK(median_rate(std::vector<std::uint64_t>{0, absurd}) == 0);
  CHECK(median_rate(std::vector<link_rate>{{{1}, 3'000}, {{2}, 9'000}, {{3}, 4'000}}) == 4'000);
}

TEST_CASE("a liar among five nodes does not move the median beyond the others", "[core][plan]") {
  for (std::uint64_t lie : {std::uint64_t{1'000}, std::uint64_t{10'000'000'000'000}}) {
    auto median = median_rate(std::vector<std::uint64_t>{11'000, 12'000, 13'000, 14'000, lie});
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
