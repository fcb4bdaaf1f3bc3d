#include "torch/numbers.hpp"

#include <array>
#include <bit>
#include <cstdint>

namespace shoal::engine {

double sum_of_squares(std::span<const float> values) {
  constexpr std::size_t lanes = 8;
  std::array<double, lanes> sums{};
  std::size_t i = 0;
  for (; i + lanes <= values.size(); i += lanes)
    for (std::size_t k = 0; k < lanes; ++k) {
      double x = values[i + k];
      sums[k] += x * x;
    }
  for (std::size_t k = 0; i < values.size(); ++i, ++k) {
    double x = values[i];
    sums[k] += x * x;
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

bool all_finite(std::span<const float> values) {
  // Infinity and NaN are those whose exponent bits are all ones. No early way out: the loop is
  // vectorized, and the answer is nearly always yes.
  std::uint32_t found = 0;
  for (float x : values) found |= (std::bit_cast<std::uint32_t>(x) & 0x7F800000u) == 0x7F800000u;
  return found == 0;
}

}  // namespace shoal::engine
