#pragma once
// The checks behind `validate_plan`, a group of rules a file; each relies on those above it.
//
//   plan ---> counts ---> order ---> channels ---> cycles ---> versions, memory, updates, facts

#include "base/result.hpp"
#include "core/schedule/cell_index.hpp"
#include "core/schedule/validate_plan.hpp"

namespace shoal::core::checks {

/// What all checks look at. References live as long as the call of `validate_plan`.
struct subject {
  const pipeline_plan& plan;
  const cell_index& index;
  const validation_limits& limits;
  bool executable;  ///< any send or receive is there, or no stage has its neighbour elsewhere
};

result<void> counts(const subject& s);                                        // rules 1, 3, 12, 13
result<void> order(const subject& s);                                         // rule 2
result<void> channels(const subject& s);                                      // rule 4
result<void> cycles(const subject& s);                                        // rule 5
result<void> versions(const subject& s, std::vector<rank_figures>& figures);  // rule 6
result<void> memory(const subject& s, std::vector<rank_figures>& figures);    // rule 6
result<void> updates(const subject& s);                                       // rules 7, 10
result<void> morphing(const subject& s);                                      // rule 9
result<void> ties(const subject& s);                                          // rule 8
result<void> facts(const subject& s, std::uint64_t hash);  // rules 3 (blocks), 14, 15
std::vector<std::string> warnings(const subject& s, const std::vector<rank_figures>& figures);

/// The virtual stages that rank r holds, in order.
std::vector<virtual_stage> stages_of(const pipeline_plan& plan, rank_index r);

/// The ranks that hold stage s in any chain, in order.
std::vector<rank_index> ranks_of(const pipeline_plan& plan, virtual_stage s);

/// How many micro-batches run through stage s on rank r.
std::uint32_t share_of(const pipeline_plan& plan, rank_index r, virtual_stage s);

/// Where B or W of a micro-batch ends its life at a stage.
inline bool finishes(const cell& c) {
  return c.what == operation::backward || c.what == operation::weight_gradient;
}

}  // namespace shoal::core::checks
