#pragma once
// What a message costs on a link: a table over its size.
//
//   bytes     latency   bytes/s        between rows: straight lines over log(bytes), of the latency
//   1 KiB     0.1 ms    20e6           and of log(rate); outside: the nearest row
//   1 MiB     0.1 ms    900e6
//
// A message takes the link for bytes / rate (`occupancy`) and is there `latency` after that. The
// rate must depend on the size: windows and copies make small messages slow on real networks.

#include <cstdint>
#include <vector>

#include "base/result.hpp"

namespace shoal::core {

struct link_point {
  std::uint64_t bytes = 0;
  std::int64_t latency_ns = 0;
  double bytes_per_s = 0;  ///< 0 is unlimited, and must then be so in every row
};

/// Rows in rising order of bytes; no rows is a link that takes no time.
struct link_table {
  std::vector<link_point> rows;

  std::int64_t latency_ns(std::uint64_t bytes) const;
  double bytes_per_s(std::uint64_t bytes) const;
  /// Rounded to whole ns.
  std::int64_t occupancy_ns(std::uint64_t bytes) const;

  /// One latency and rate for all sizes.
  static link_table flat(std::int64_t latency_ns, double bytes_per_s);
};

/// `errc::config` for rows out of order, negative latencies, rates that are no finite number.
result<void> check(const link_table& table);

}  // namespace shoal::core
