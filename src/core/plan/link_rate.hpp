#pragma once
// How the rates that nodes measure on their links become the planner's one figure.
//
//   frames from a peer -> tensor plane: a rate a peer -> stage: median over peers -> lead: median
//   over nodes -> supervisor: smoothed into plan_profile::link_bytes_per_s
//
// Medians, since one node on a bad cable, or one that lies, must not move everybody's plan. Nothing
// here stops a view: a figure that cannot be true counts as none. Only the time that frames take by
// size is measured, not the latency: no clock is shared, and the way of a heartbeat and its lease
// leads to the supervisor, not to a neighbour. The latency stays as it was profiled.

#include <cstdint>
#include <vector>

#include "core/messages.hpp"

namespace shoal::core {

/// What a peer's frames come with.
struct link_rate {
  node_id from;
  std::uint64_t bytes_per_s = 0;
};

/// 1 kB/s to 10 TB/s: whatever is outside was not measured on a link that trains.
constexpr std::uint64_t link_rate_min = 1'000, link_rate_max = 10'000'000'000'000;
bool is_likely_rate(std::uint64_t bytes_per_s);

/// The middle one of those that are likely, the lower of two; 0 when there is none.
std::uint64_t median_rate(std::vector<std::uint64_t> bytes_per_s);
std::uint64_t median_rate(const std::vector<link_rate>& links);

/// A quarter of the way from `known` to `measured`, in seconds a byte, since times are what plans
/// are made of. `known` where the measured one is not likely; the measured one where `known` is 0,
/// which stands for a link that costs nothing.
double refined_rate(double known, std::uint64_t measured);

}  // namespace shoal::core
