#include "core/plan/link_figures.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::core {

namespace {

/// The lower middle one; 0 when there is none.
std::uint64_t median_of(std::vector<std::uint64_t> values) {
  if (values.empty()) return 0;
  auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

bool is_likely_rate(std::uint64_t bytes_per_s) {
  return bytes_per_s >= link_rate_min && bytes_per_s <= link_rate_max;
}

bool is_likely_one_way(std::uint64_t ns) {
  return ns >= link_one_way_min_ns && ns <= link_one_way_max_ns;
}

link_figures median_of(const std::vector<link_figures>& links) {
  std::vector<std::uint64_t> rates, ways;
  for (auto& link : links) {
    if (is_likely_rate(link.bytes_per_s)) rates.push_back(link.bytes_per_s);
    if (is_likely_one_way(link.one_way_ns)) ways.push_back(link.one_way_ns);
  }
  return {median_of(std::move(rates)), median_of(std::move(ways))};
}

link_figures median_of(const std::vector<peer_link>& links) {
  std::vector<link_figures> figures;
  for (auto& link : links) figures.push_back(link.figures);
  return median_of(figures);
}

double refined_rate(double known, std::uint64_t measured) {
  if (!is_likely_rate(measured)) return known;
  auto seen = static_cast<double>(measured);
  if (!std::isfinite(known) || known <= 0) return seen;
  return 1 / (1 / known + (1 / seen - 1 / known) / 4);
}

std::chrono::nanoseconds refined_latency(std::chrono::nanoseconds known, std::uint64_t one_way_ns) {
  if (!is_likely_one_way(one_way_ns)) return known;
  auto seen = std::chrono::nanoseconds(one_way_ns) + frame_handling;
  return known + (seen - known) / 4;
}

}  // namespace shoal::core
