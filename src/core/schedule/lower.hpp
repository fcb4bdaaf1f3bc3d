#pragma once
// From the order in which ranks compute to the lists that they execute.
//
//   1F1B, rank 0 of 2, compute-only:  0F0 0F1 0B0 0B1
//   executable:  0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1
//                0REDUCE_GRAD 0NORM 0OPT 0MORPH_OK
//
// A pure function: every rank derives all lists and compares `plan_hash`. All cells are laid on one
// time line with whole-number costs. A send follows the cell that makes what it sends, and its
// receive is put on the other rank's list at the same moment, behind the cell that runs there then
// (so that a receive may stand between a cell and its send). All lists are cuts of one order, and
// cannot deadlock even where sends and receives wait for each other.

#include <vector>

#include "base/result.hpp"
#include "core/schedule/cell_costs.hpp"
#include "core/schedule/pipeline_plan.hpp"

namespace shoal::core {

struct lowering_options {
  /// REDUCE_GRAD of each stage: when the last of its ranks is done, or before each OPT.
  bool reduce = true;
  /// Sets of stages that share a parameter: TIE before NORM. Plans with a flush only.
  std::vector<std::vector<virtual_stage>> ties;
  /// NORM before OPT: gradients are clipped, or checked for infinity. Plans with a flush only.
  bool norm = true;
  /// MORPH_OK at the end.
  bool morph_point = true;
  /// The time line's costs: empty for the default, or one for each rank, all at least 1. They move
  /// receives among the cells, nothing else.
  std::vector<cell_costs> costs;
};

/// Derives the executable plan. `errc::config`: what `validate_plan` says of the compute-only plan;
/// a plan that is executable already; options that its semantics cannot have, with the nearest. The
/// result passes `validate_plan` with rendezvous and the same ties.
result<pipeline_plan> lower(const pipeline_plan& compute_only,
                            const lowering_options& options = {});

}  // namespace shoal::core
