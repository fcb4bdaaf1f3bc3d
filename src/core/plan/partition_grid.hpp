#pragma once
// Cuts of a chain for a grid of equal replicas: p stages on p equal devices.
//
//   blocks   5  3 | 4  4 | 6  2 | 8        the slowest stage takes 8: the bottleneck
//
// The least bottleneck is found by bisection: for a limit, filling stages up from the left shows
// whether p of them are enough. Times are whole nanoseconds, so the answer is exact. Among the cuts
// of that bottleneck one with the least sum of squares comes first (fill and drain are shortest
// when all stages are alike), then the fewest bytes over the boundaries, then the fewest to move.

#include <cstdint>
#include <optional>
#include <vector>

#include "core/layout.hpp"

namespace shoal::core::planning {

/// What a block adds to its stage. The last stage never recomputes, and so takes less for it.
struct grid_block {
  std::uint64_t time_ns = 0;         ///< on any stage but the last; at least last_time_ns
  std::uint64_t last_time_ns = 0;    ///< on the last one
  std::uint64_t boundary_bytes = 0;  ///< its input
  std::uint64_t held_bytes = 0;      ///< parameters and state: what moves with it
};

/// Cuts one chain into any number of stages.
class grid_partitioner {
public:
  /// At least one block; the sum of all times below 2^60 ns.
  explicit grid_partitioner(const std::vector<grid_block>& blocks);

  /// The slowest stage of the best cut into `stage_count` stages, none empty, in O(N log time).
  /// Nothing when there are fewer blocks than stages, or no stages.
  std::optional<std::uint64_t> bottleneck(stage_index stage_count) const;

  /// The best cut: by bottleneck, squares, boundary bytes, and bytes that stage s lacks of what
  /// `present[s]` holds. O(N^2 p) at worst, O(N p) where stages are alike.
  std::optional<std::vector<index_range>> cut(stage_index stage_count,
                                              const std::vector<index_range>& present = {}) const;

  /// How long a stage takes.
  std::uint64_t time_ns(index_range blocks, bool is_last) const;

private:
  /// Whether some cut has no stage above `limit`. `decides`: if so, the longest stage of one; if
  /// not, the least limit that would cut otherwise.
  bool is_enough(std::uint64_t limit, stage_index stage_count, std::uint64_t& decides) const;

  std::uint32_t block_count_;
  std::vector<std::uint64_t> time_, last_time_, held_;  // sums of the blocks before
  std::vector<std::uint64_t> boundary_;
};

}  // namespace shoal::core::planning
