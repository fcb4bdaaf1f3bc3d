#pragma once
// How far the stages of a chosen layout run ahead, and what the simulator says it takes.
//
//   1f1b-searched:  `search_warm_up` on each replica, within its nodes' memory
//   varuna:         as many micro-batches in flight as each node's memory holds
//   others:         nothing to choose
//
// The search compares closed forms; between orders, which differ in how they wait for links, the
// event simulator decides.

#include <optional>

#include "core/plan/candidate.hpp"

namespace shoal::core::planning {

/// Sets `ahead` of the replicas of `shape`, which is that of `c`; from a closed form where the
/// layout is too large to be simulated often. Returns the simulated time of a step where `simulate`
/// asks for it and the layout is not too large for that.
std::optional<nanoseconds> set_ahead(const price_list& prices, const candidate& c, layout& shape,
                                     bool simulate);

}  // namespace shoal::core::planning
