#include "core/plan/link_rate.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::core {

bool is_likely_rate(std::uint64_t bytes_per_s) {
  return bytes_per_s >= link_rate_min && bytes_per_s <= link_rate_max;
}

std::uint64_t median_rate(std::vector<std::uint64_t> rates) {
  std::erase_if(rates, [](auto rate) { return !is_likely_rate(rate); });
  if (rates.empty()) return 0;
  auto middle = rates.begin() + static_cast<std::ptrdiff_t>((rates.size() - 1) / 2);
  std::ranges::nth_element(rates, middle);
  return *middle;
}

std::uint64_t median_rate(const std::vector<link_rate>& links) {
  std::vector<std::uint64_t> rates;
  for (auto& link : links) rates.push_back(link.bytes_per_s);
  return median_rate(std::move(rates));
}

double refined_rate(double known, std::uint64_t measured) {
  if (!is_likely_rate(measured)) return known;
  auto seen = static_cast<double>(measured);
  if (!std::isfinite(known) || known <= 0) return seen;
  return 1 / (1 / known + (1 / seen - 1 / known) / 4);
}

}  // namespace shoal::core
