#include "base/robust_mean.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"

namespace shoal {

namespace {

double median(std::vector<double>& values) {
  std::ranges::sort(values);
  auto half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

robust_value robust_mean(std::vector<double> values) {
  SHOAL_ASSERT(!values.empty());
  auto middle = median(values);
  std::vector<double> distances;
  for (auto v : values) distances.push_back(std::abs(v - middle));
  auto limit = 3 * std::max(1.4826 * median(distances), std::abs(middle) * 0.02);

  robust_value out;
  double sum = 0, squares = 0;
  for (auto v : values) {
    if (std::abs(v - middle) > limit) {
      ++out.rejected;
      continue;
    }
    ++out.used;
    sum += v;
  }
  SHOAL_ASSERT(out.used > 0);
  out.mean = sum / out.used;
  for (auto v : values)
    if (std::abs(v - middle) <= limit) squares += (v - out.mean) * (v - out.mean);
  if (out.used > 1) out.half_width = 1.96 * std::sqrt(squares / (out.used - 1) / out.used);
  return out;
}

}  // namespace shoal
