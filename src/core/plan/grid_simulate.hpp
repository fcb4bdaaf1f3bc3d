#pragma once
// A grid's pipeline in the event simulator: what the search asks about its finalists.

#include "core/plan/grid_search.hpp"

namespace shoal::core {

/// Seconds from the first forward to the last backward pass of one replica, without the exchange of
/// gradients. Pure; for `grid_request::simulate`. `plan` is one that the search made.
double simulated_seconds(const sized_profile& profile, const grid_plan& plan);

}  // namespace shoal::core
