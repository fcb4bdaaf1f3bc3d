#pragma once
// Cuts one chain of nodes so that its slowest stage is as fast as can be and all fit.

#include "core/plan/chain.hpp"

namespace shoal::core::planning {

/// Sets the blocks of `replica`, and what recomputes where the job leaves that to the planner: no
/// more than `load` makes necessary. False when nothing fits; the blocks are then as they may be.
bool cut(const price_list& prices, chain& replica, chain_load load);

}  // namespace shoal::core::planning
