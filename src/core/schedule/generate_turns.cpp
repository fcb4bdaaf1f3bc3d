// GPipe and 1F1B: forward ahead by the warm-up, then forward and backward by turns.
//
//   GPipe (arXiv 1811.06965), 1F1B = PipeDream-Flush = DAPPLE's PA, eager = DAPPLE's PB
//   (arXiv 2007.01045). A warm-up vector is what a search finds for slow links: with w_r at least
//   p-1-r plus what is on the wire, latency hides behind compute.

#include <string>

#include "core/schedule/families.hpp"
#include "core/schedule/warm_up.hpp"

namespace shoal::core::families {

namespace {

/// A rank that waits for more warm-ups than its neighbour above gives would wait for ever.
result<void> check_warm_up(const plan_options& options) {
  auto& w = options.warm_up;
  if (w.empty()) return {};
  if (w.size() != options.ranks)
    return illegal(options, "warm-ups", static_cast<std::uint32_t>(w.size()),
                   "a vector has one for each rank", 0, options.ranks);
  for (std::size_t r = 1; r < w.size(); ++r) {
    // Rank r's first backward comes after 1 + w_r forwards; rank r-1 must give as many before it
    // waits for that backward itself.
    auto mine = std::min(w[r], options.micro_batches - 1);
    auto above = std::min(w[r - 1], options.micro_batches - 1);
    if (above < mine)
      return illegal(options, ("warm-ups on rank " + std::to_string(r)).c_str(), w[r],
                     "rank " + std::to_string(r - 1) + " forwards " + std::to_string(above + 1) +
                       " before it waits for a gradient",
                     0, above);
  }
  return {};
}

}  // namespace

result<pipeline_plan> turns(const plan_options& options) {
  TRY_VOID(check_warm_up(options));
  auto plan = empty_plan(options);
  plan.placement = {linear_placement(options.ranks)};
  auto rule = find_warm_up(options.name);
  for (rank_index r = 0; r < options.ranks; ++r) {
    auto ahead = options.warm_up.empty() ? rule(options.ranks - 1 - r, options.micro_batches)
                                         : options.warm_up[r];
    take_turns(
      ahead, options.micro_batches,
      [&](std::uint32_t m) {
        plan.ranks[r].push_back({operation::forward, r, m});
      },
      [&](std::uint32_t m) { append_backward(plan, r, r, m, options.recompute); });
  }
  return plan;
}

}  // namespace shoal::core::families
