#include "base/robust_mean.hpp"

#include <catch2/catch.hpp>

using namespace shoal;

TEST_CASE("a disturbed measurement does not move the mean", "[base]") {
  auto value = robust_mean({9.8, 10.1, 31.2, 10.0, 9.9});
  CHECK(value.mean == Approx(9.95));
  CHECK(value.used == 4);
  CHECK(value.rejected == 1);
  CHECK(value.half_width == Approx(1.96 * 0.1290994 / 2));
  CHECK(value.relative_half_width() == Approx(value.half_width / 9.95));
}

TEST_CASE("equal values are all used, and so are small differences", "[base]") {
  CHECK(robust_mean({5, 5, 5}).mean == 5);
  CHECK(robust_mean({5, 5, 5}).half_width == 0);
  // The median absolute deviation is 0 here; 2 % of the median still counts as usual.
  CHECK(robust_mean({100, 100, 100, 103}).used == 4);
  CHECK(robust_mean({100, 100, 100, 107}).used == 3);
}

TEST_CASE("one value is its own mean, and zero has no relative width", "[base]") {
  CHECK(robust_mean({7}).mean == 7);
  CHECK(robust_mean({7}).half_width == 0);
  CHECK(robust_mean({0, 0}).relative_half_width() == 0);
}
