#include "transport/link_clock.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::transport {

passage link_clock::put(core::time_point now, std::uint64_t bytes) {
  // A rate so small that time would overflow is as good as a dead link.
  constexpr std::chrono::nanoseconds horizon = std::chrono::hours(24 * 365);
  auto begin = std::max(now, free_at_), end = begin;
  if (rate_.bytes_per_s > 0) {
    auto ns = std::ceil(static_cast<double>(bytes) / rate_.bytes_per_s * 1e9);
    end += std::chrono::nanoseconds(
      static_cast<std::int64_t>(std::min(ns, static_cast<double>(horizon.count()))));
    end = std::min(end, now + horizon);
  }
  free_at_ = end;
  return {begin + delay_, end + delay_};
}

}  // namespace shoal::transport
