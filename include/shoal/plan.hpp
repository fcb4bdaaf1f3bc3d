#pragma once
// The planner as a library: layouts for nodes, grids for many, cuts of a chain, profiles.
//
//   plan            which node holds which blocks of which replica, as a running job does it
//   search_grids    the best depth, replicas, cuts, schedule and recompute for equal nodes, and why
//   cut_replicated, grid_partitioner, cut_in_order    the partitioners behind it
//   model_profile   measured costs of a model; parse_profile_text reads PipeDream's
//
// Pure and deterministic. Link shoal::core.

#include "core/plan/grid_search.hpp"
#include "core/plan/grid_simulate.hpp"
#include "core/plan/model_profile.hpp"
#include "core/plan/partition_grid.hpp"
#include "core/plan/partition_order.hpp"
#include "core/plan/partition_replicated.hpp"
#include "core/plan/plan.hpp"
#include "core/plan/profile_text.hpp"
