#pragma once
// The generators behind `make_plan`, one family a file, and what they share.
//
//   linear, p=3:  0 1 2      looped, p=2, v=2:  0 1 0 1      V, p=2:  0 1 1 0
//
// Each gets options whose sizes are within limits and gives a compute-only plan.

#include "core/schedule/make_plan.hpp"

namespace shoal::core::families {

result<pipeline_plan> turns(const plan_options& options);  // gpipe, 1f1b, 1f1b-eager
result<pipeline_plan> looped_bfs(const plan_options& options);
result<pipeline_plan> interleaved(const plan_options& options);
result<pipeline_plan> varuna(const plan_options& options);
result<pipeline_plan> pipedream(const plan_options& options);
result<pipeline_plan> double_buffered(const plan_options& options);
result<pipeline_plan> zero_bubble_h(const plan_options& options);
result<pipeline_plan> zero_bubble_v(const plan_options& options);
result<pipeline_plan> dualpipe(const plan_options& options);  // both directions, and V
result<pipeline_plan> chimera(const plan_options& options);

/// A plan with name, micro-batches, and one empty order for each rank.
pipeline_plan empty_plan(const plan_options& options);

std::vector<rank_index> linear_placement(std::uint32_t ranks);
std::vector<rank_index> looped_placement(std::uint32_t ranks, std::uint32_t chunks);
std::vector<rank_index> v_placement(std::uint32_t ranks);
/// Chain 0 runs down the ranks, chain 1 up.
std::vector<std::vector<rank_index>> opposite_placement(std::uint32_t ranks);

/// Appends B, or R and B where `recompute`, and the stage has a stage after it.
void append_backward(pipeline_plan& plan, rank_index r, virtual_stage s, micro_batch_index m,
                     bool recompute);

/// "interleaved-1f1b cannot run 10 micro-batches on 4 ranks: <why>; the nearest legal number of
/// micro-batches is 8 or 12." `below` 0: only `above` is legal.
error illegal(const plan_options& options, const char* what, std::uint32_t value,
              const std::string& why, std::uint32_t below, std::uint32_t above);

}  // namespace shoal::core::families
