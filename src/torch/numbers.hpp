#pragma once
// Arithmetic over raw floats whose order of additions is ours, not a library's.

#include <span>

namespace shoal::engine {

/// The sum of squares in float64: eight running sums, element i into sum i mod 8, added pairwise at
/// the end. The same bits wherever the floats lie in memory.
double sum_of_squares(std::span<const float> values);

/// Whether none is infinite or NaN.
bool all_finite(std::span<const float> values);

}  // namespace shoal::engine
