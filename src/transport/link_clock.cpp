#include "transport/link_clock.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::transport {

core::time_point link_clock::put(core::time_point now, std::uint64_t bytes) {
  // A rate so small that time would overflow is as good as a dead link.
  constexpr std::chrono::nanoseconds horizon = std::chrono::hours(24 * 365);
  auto begin = std::max(now, free_at_);
  if (rate_.bytes_per_s > 0) {
    auto ns = std::ceil(static_cast<double>(bytes) / rate_.bytes_per_s * 1e9);
    begin += std::chrono::nanoseconds(
      static_cast<std::int64_t>(std::min(ns, static_cast<double>(horizon.count()))));
    begin = std::min(begin, now + horizon);
  }
  free_at_ = begin;
  return free_at_ + delay_;
}

}  // namespace shoal::transport
