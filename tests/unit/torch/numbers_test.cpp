#include "torch/numbers.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "unit/torch/with_torch.hpp"

using namespace shoal::engine;

TEST_CASE("the sum of squares is exact for small whole numbers, for every length", "[torch]") {
  std::vector<float> values;
  double expected = 0;
  for (int n = 0; n < 40; ++n) {
    CHECK(sum_of_squares(values) == expected);
    values.push_back(static_cast<float>(n - 20));
    expected += (n - 20.0) * (n - 20.0);
  }
}

TEST_CASE("the sum of squares has the same bits at every address", "[torch]") {
  std::vector<float> memory(1100);
  double first = 0;
  for (std::size_t shift = 0; shift < 17; ++shift) {
    for (std::size_t i = 0; i < 1003; ++i)
      memory[shift + i] = std::sin(static_cast<float>(i)) * 1e10f;
    auto sum = sum_of_squares(std::span(memory).subspan(shift, 1003));
    if (shift == 0) first = sum;
    CHECK(sum == first);
  }
}

TEST_CASE("squares of the largest floats do not overflow", "[torch]") {
  std::vector<float> values(1000, std::numeric_limits<float>::max());
  CHECK(std::isfinite(sum_of_squares(values)));
}

TEST_CASE("a single value that is not finite is found wherever it lies", "[torch]") {
  std::vector<float> values(67, std::numeric_limits<float>::max());
  values[5] = -0.0f;
  values[6] = std::numeric_limits<float>::denorm_min();
  CHECK(all_finite(values));
  for (auto bad : {INFINITY, -INFINITY, NAN})
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto copy = values;
      copy[i] = bad;
      CHECK_FALSE(all_finite(copy));
      CHECK_FALSE(std::isfinite(sum_of_squares(copy)));
    }
  CHECK(all_finite({}));
}
