#pragma once
// Where a chain of blocks is cut into stages, and a step's micro-batches into replicas.

#include <functional>
#include <optional>
#include <vector>

#include "core/layout.hpp"

namespace shoal::core::planning {

/// What a stage `s` of `blocks` takes; must not fall as `blocks.end` grows. Infinite when it does
/// not fit.
using stage_seconds = std::function<double(stage_index s, index_range blocks)>;

/// Cuts [0, block_count) into `stage_count` stages, none empty, so that the slowest is as fast as
/// can be. Nothing when no cut is finite.
std::optional<std::vector<index_range>> cut_blocks(std::uint32_t block_count,
                                                   stage_index stage_count,
                                                   const stage_seconds& seconds);

/// Cuts for stages that have parts by turns: part p belongs to stage p % stage_count, and a stage
/// takes the sum of its parts. Starts from the best cut of all parts as if each were a stage, then
/// shifts borders block by block while the slowest stage gets faster: near the best, not always it.
/// Nothing when the cut it starts from is not finite.
std::optional<std::vector<index_range>> cut_chunks(std::uint32_t block_count,
                                                   stage_index stage_count,
                                                   std::uint32_t chunk_count,
                                                   const stage_seconds& seconds_of_part);

/// Of all cuts whose stages take at most `limit`, one with the largest sum of `value`. Nothing when
/// there is none.
std::optional<std::vector<index_range>> recut_blocks(
  std::uint32_t block_count, stage_index stage_count, double limit, const stage_seconds& seconds,
  const std::function<std::uint64_t(stage_index, index_range)>& value);

/// How long a replica takes for m micro-batches: (m + lead_in) * seconds_each + fill_s.
struct pace {
  double seconds_each = 0;
  double lead_in = 0;
  double fill_s = 0;
  double finish(std::uint32_t m) const { return (m + lead_in) * seconds_each + fill_s; }
};

/// Cuts [0, count) into a range for each pace so that the last replica ends as early as can be,
/// with borders at multiples of `grain`. Nothing when that leaves one empty.
std::optional<std::vector<index_range>> share_out(const std::vector<pace>& paces,
                                                  std::uint32_t count, std::uint32_t grain);

}  // namespace shoal::core::planning
