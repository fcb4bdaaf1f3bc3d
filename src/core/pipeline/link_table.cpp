#include "core/pipeline/link_table.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace shoal::core {

namespace {

/// The rows around `bytes`, and how far it is from the first to the second.
struct position {
  const link_point* low;
  const link_point* high;
  double share;
};

position find(const std::vector<link_point>& rows, std::uint64_t bytes) {
  auto high = std::lower_bound(rows.begin(), rows.end(), bytes,
                               [](const link_point& p, std::uint64_t b) { return p.bytes < b; });
  if (high == rows.end()) return {&rows.back(), &rows.back(), 0};
  if (high == rows.begin() || high->bytes == bytes) return {&*high, &*high, 0};
  auto low = high - 1;
  auto log_of = [](std::uint64_t b) { return std::log(static_cast<double>(std::max(b, 1ul))); };
  double share = (log_of(bytes) - log_of(low->bytes)) / (log_of(high->bytes) - log_of(low->bytes));
  return {&*low, &*high, std::isfinite(share) ? share : 0};
}

}  // namespace

std::int64_t link_table::latency_ns(std::uint64_t bytes) const {
  if (rows.empty()) return 0;
  auto [low, high, share] = find(rows, bytes);
  auto a = static_cast<double>(low->latency_ns), b = static_cast<double>(high->latency_ns);
  return std::llround(a + share * (b - a));
}

double link_table::bytes_per_s(std::uint64_t bytes) const {
  if (rows.empty() || rows.front().bytes_per_s <= 0) return 0;
  auto [low, high, share] = find(rows, bytes);
  if (share == 0) return low->bytes_per_s;
  double a = std::log(low->bytes_per_s), b = std::log(high->bytes_per_s);
  return std::exp(a + share * (b - a));
}

std::int64_t link_table::occupancy_ns(std::uint64_t bytes) const {
  double rate = bytes_per_s(bytes);
  return rate <= 0 ? 0 : std::llround(static_cast<double>(bytes) / rate * 1e9);
}

link_table link_table::flat(std::int64_t latency_ns, double bytes_per_s) {
  return {{{0, latency_ns, bytes_per_s}}};
}

result<void> check(const link_table& table) {
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    auto& row = table.rows[i];
    auto where = "row " + std::to_string(i) + " of a link";
    if (i > 0 && row.bytes <= table.rows[i - 1].bytes)
      return error{errc::config, where + ": " + std::to_string(row.bytes) +
                                   " bytes; rows rise, so expected more than " +
                                   std::to_string(table.rows[i - 1].bytes)};
    if (row.latency_ns < 0 || row.latency_ns > 1'000'000'000'000)
      return error{errc::config, where + ": a latency of " + std::to_string(row.latency_ns) +
                                   " ns; expected 0 to 1000 s"};
    bool unlimited = row.bytes_per_s == 0;
    if (!std::isfinite(row.bytes_per_s) || row.bytes_per_s < 0 ||
        (!unlimited && (row.bytes_per_s < 1 || row.bytes_per_s > 1e15)))
      return error{errc::config, where + ": a rate of " + std::to_string(row.bytes_per_s) +
                                   " bytes/s; expected 1 to 1e15, or 0 for unlimited"};
    if (unlimited != (table.rows.front().bytes_per_s == 0))
      return error{errc::config, where + ": all rows are unlimited, or none is"};
  }
  return {};
}

}  // namespace shoal::core
