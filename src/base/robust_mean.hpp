#pragma once
// The usual value of measurements of which some were disturbed.
//
//   9.8 10.1 10.0 31.2 9.9   ->   9.95 of 4, 1 rejected
//
// What lies further from the median than three deviations (1.4826 times the median absolute
// deviation, at least 2 % of the median) is rejected; of the rest comes the mean, and the half
// width of its 95 % interval by the normal approximation.

#include <cstdint>
#include <vector>

namespace shoal {

struct robust_value {
  double mean = 0;
  double half_width = 0;  ///< of the 95 % interval of the mean; 0 for a single value
  std::uint32_t used = 0;
  std::uint32_t rejected = 0;

  /// half_width / mean; 0 for a mean of 0.
  double relative_half_width() const { return mean != 0 ? half_width / mean : 0; }
};

/// Of finite values, at least one. Their order does not matter.
robust_value robust_mean(std::vector<double> values);

}  // namespace shoal
