// Several chunks a rank in a looped placement: all micro-batches of a chunk first (looped BFS), or
// in groups that walk through the chunks (interleaved 1F1B).
//
//   p=2, v=2, m=4, group 2, rank 0:  0F0 0F1 2F0 2F1 0F2 | 0F3 2B0  2F2 2B1 ...
//
//   Interleaved: Megatron-LM PTD-P (arXiv 2104.04473): warm-ups 2(p-1-r) + (v-1) g: the first input
//   must travel once through all ranks and its gradient once back. Groups of g micro-batches walk
//   the chunks up in F and down in B; the last group may be smaller, as in today's Megatron.
//   Looped BFS: as in torch.distributed.pipelining.

#include <algorithm>
#include <string>

#include "core/schedule/families.hpp"
#include "core/schedule/warm_up.hpp"

namespace shoal::core::families {

namespace {

struct turn {
  std::uint32_t chunk;
  micro_batch_index micro_batch;
};

/// The order in which groups of micro-batches walk chunks upwards.
std::vector<turn> walk_of(std::uint32_t chunks, std::uint32_t micro_batches, std::uint32_t group) {
  std::vector<turn> walk;
  for (std::uint32_t begin = 0; begin < micro_batches; begin += group)
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk)
      for (auto m = begin; m < std::min(begin + group, micro_batches); ++m)
        walk.push_back({chunk, m});
  return walk;
}

result<void> check_groups(const plan_options& options, std::uint32_t chunks, std::uint32_t group) {
  auto p = options.ranks, m = options.micro_batches;
  if (chunks < 2)
    return illegal(options, "chunks a rank", chunks, "with one chunk it is 1f1b", 0, 2);
  if (m < p)
    return illegal(options, "micro-batches", m,
                   std::to_string(p) + " ranks need as many to fill the first chunk", 0, p);
  if (group < p || group > m)
    return illegal(options, "micro-batches a group", group,
                   "a group has " + std::to_string(p) + " (the ranks) to " + std::to_string(m) +
                     " (the micro-batches)",
                   0, std::clamp(group, p, m));
  if (auto rest = m % group; rest != 0 && rest < p)
    return illegal(options, "micro-batches", m,
                   "the last group of " + std::to_string(rest) + " is smaller than the " +
                     std::to_string(p) + " ranks",
                   m - rest, m - rest + std::min(p, group));
  return {};
}

}  // namespace

result<pipeline_plan> looped_bfs(const plan_options& options) {
  auto chunks = options.chunks == 0 ? 2 : options.chunks;
  auto plan = empty_plan(options);
  plan.placement = {looped_placement(options.ranks, chunks)};
  for (rank_index r = 0; r < options.ranks; ++r) {
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk)
      for (micro_batch_index m = 0; m < options.micro_batches; ++m)
        plan.ranks[r].push_back({operation::forward, chunk * options.ranks + r, m});
    for (auto chunk = chunks; chunk-- > 0;)
      for (micro_batch_index m = 0; m < options.micro_batches; ++m)  // in order of accumulation
        append_backward(plan, r, chunk * options.ranks + r, m, options.recompute);
  }
  return plan;
}

result<pipeline_plan> interleaved(const plan_options& options) {
  auto p = options.ranks;
  auto chunks = options.chunks == 0 ? 2 : options.chunks;
  auto group = options.group == 0 ? p : options.group;
  TRY_VOID(check_groups(options, chunks, group));
  auto plan = empty_plan(options);
  plan.placement = {looped_placement(p, chunks)};
  auto walk = walk_of(chunks, options.micro_batches, group);
  for (rank_index r = 0; r < p; ++r) {
    auto warm_up = std::uint64_t{2} * (p - 1 - r) + std::uint64_t{chunks - 1} * group;
    auto count = static_cast<std::uint32_t>(walk.size());
    take_turns(
      static_cast<std::uint32_t>(std::min<std::uint64_t>(warm_up, count)), count,
      [&](std::uint32_t k) {
        plan.ranks[r].push_back({operation::forward, walk[k].chunk * p + r, walk[k].micro_batch});
      },
      [&](std::uint32_t k) {
        auto s = (chunks - 1 - walk[k].chunk) * p + r;
        append_backward(plan, r, s, walk[k].micro_batch, options.recompute);
      });
  }
  return plan;
}

}  // namespace shoal::core::families
