#pragma once
// How what nodes measure on their links becomes the planner's figures of one link.
//
//   frames of a peer, round trips to it -> tensor plane: figures a peer -> stage: median over peers
//   -> lead: median over nodes -> supervisor: smoothed into plan_profile
//
// Medians, since one node on a bad cable, or one that lies, must not move everybody's plan. Nothing
// here stops a view: a figure that cannot be true counts as none. The two figures of a link are
// taken each by itself.

#include <chrono>
#include <cstdint>
#include <vector>

#include "core/messages.hpp"

namespace shoal::core {

/// What the link with a peer was measured with.
struct peer_link {
  node_id peer;
  link_figures figures;
};

/// 1 kB/s to 10 TB/s: whatever is outside was not measured on a link that trains.
constexpr std::uint64_t link_rate_min = 1'000, link_rate_max = 10'000'000'000'000;
bool is_likely_rate(std::uint64_t bytes_per_s);

/// One way: 1 us, less than any network card takes, to 10 s.
constexpr std::uint64_t link_one_way_min_ns = 1'000, link_one_way_max_ns = 10'000'000'000;
bool is_likely_one_way(std::uint64_t ns);

/// What a small frame takes beside the wire, on any link: threads are woken, bytes copied. With the
/// way over loopback, of some us, it is the 40 us that `shoal profile` sees there.
constexpr std::chrono::nanoseconds frame_handling{30'000};

/// Of each figure the middle one of those that are likely, the lower of two; 0 when there is none.
link_figures median_of(const std::vector<link_figures>& links);
link_figures median_of(const std::vector<peer_link>& links);

/// A quarter of the way from `known` to `measured`, in seconds a byte, since times are what plans
/// are made of. `known` where the measured one is not likely; the measured one where `known` is 0,
/// which stands for a link that costs nothing.
double refined_rate(double known, std::uint64_t measured);

/// A quarter of the way from `known` to the measured way and `frame_handling`; `known` where the
/// measured one is not likely.
std::chrono::nanoseconds refined_latency(std::chrono::nanoseconds known, std::uint64_t one_way_ns);

}  // namespace shoal::core
