#include "core/plan/free_cuts.hpp"

#include "base/assert.hpp"
#include "core/plan/cuts.hpp"

namespace shoal::core::planning {

const std::optional<std::vector<index_range>>& free_cuts::of(std::span<const double> speeds,
                                                             std::uint32_t chunks) {
  SHOAL_ASSERT(!speeds.empty() && chunks >= 1);
  key_.assign(1, chunks);
  for (auto s : speeds) key_.push_back(s / speeds[0]);
  auto found = known_.find(key_);
  if (found != known_.end()) return found->second;
  auto stages = static_cast<stage_index>(speeds.size()), last = stages * chunks - 1;
  auto made =
    cut_chunks(cost_.block_count(), stages, chunks, [&](stage_index part, index_range blocks) {
      return cost_.seconds(blocks, recompute_ && part != last) / key_[1 + part % stages];
    });
  return known_.emplace(key_, std::move(made)).first->second;
}

}  // namespace shoal::core::planning
