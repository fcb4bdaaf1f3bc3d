#pragma once
// Whole-number times of cells, for generators whose order depends on them, and the times at which
// the cells of a plan would run if sending took none.
//
//   units, F=1 B=2:   rank 0:  0F0 0F1 ..  ..  0B0 0B0 0B1 0B1
//                     rank 1:  ..  1F0 1B0 1B0 1F1 1B1 1B1
//
// This is no simulator: no link, reduction or memory. It gives a plan's cells an order that all of
// them agree to, from which sends are placed and pictures drawn.

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "core/schedule/cell_index.hpp"
#include "core/schedule/pipeline_plan.hpp"

namespace shoal::core {

/// Times of one micro-batch on one virtual stage, in any unit. At most `cell_cost_max` each.
struct cell_costs {
  std::uint32_t forward = 1;
  std::uint32_t backward = 2;
  std::uint32_t recompute = 1;
  std::uint32_t input_gradient = 1;
  std::uint32_t weight_gradient = 1;
  friend bool operator==(const cell_costs&, const cell_costs&) = default;
};
constexpr std::uint32_t cell_cost_max = 1'000'000'000;

/// What the cell takes; 0 for all that does not compute.
std::uint64_t cost_of(const cell_costs& costs, operation what);

/// The costs of rank r: `all[r]`, or the default where `all` is empty.
cell_costs costs_of(const std::vector<cell_costs>& all, rank_index r);

struct cell_time {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// When each cell (by `cell_number`) begins and ends, every rank strictly in its order, each cell
/// as soon as its inputs are there; cells of a group begin and end together and take the sum; the
/// k-th REDUCE of a stage ends when all ranks that have it have come to it. `errc::config`, rule 5,
/// naming who waits for whom, when the order deadlocks or an input is missing. The plan must pass
/// `check_shape`; `costs` is empty or has one for each rank.
result<std::vector<cell_time>> unroll(const pipeline_plan& plan, const cell_index& index,
                                      const std::vector<cell_costs>& costs);

}  // namespace shoal::core
