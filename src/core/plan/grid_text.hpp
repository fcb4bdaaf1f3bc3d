#pragma once
// Why a grid was chosen, in words.

#include <string>

#include "core/plan/grid_search.hpp"

namespace shoal::core::planning {

/// Lines: the winner with its numbers, the next three, and what each loses by.
std::string explain(const grid_request& request, const grid_choice& choice);

}  // namespace shoal::core::planning
