#pragma once
// A layout with its blocks dealt out again, several chunks a stage.

#include <algorithm>
#include <vector>

#include "core/layout.hpp"

namespace shoal::test {

/// Every replica of two stages or more gets `chunks` a stage, or as many as its blocks allow, cut
/// evenly; the order is interleaved 1F1B.
inline core::layout interleave(core::layout shape, std::uint32_t chunks) {
  shape.order = core::stage_order::interleaved;
  for (auto& replica : shape.replicas) {
    auto stages = static_cast<std::uint32_t>(replica.stages.size());
    auto blocks = core::block_count_of(replica);
    if (stages == 1) continue;
    auto parts = stages * std::min(chunks, blocks / stages);
    std::vector<std::vector<core::index_range>> runs(stages);
    for (std::uint32_t p = 0; p < parts; ++p)
      runs[p % stages].push_back({p * blocks / parts, (p + 1) * blocks / parts});
    for (std::uint32_t s = 0; s < stages; ++s)
      replica.stages[s].blocks = core::block_runs(std::move(runs[s]));
  }
  return shape;
}

}  // namespace shoal::test
