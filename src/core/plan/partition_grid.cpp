#include "core/plan/partition_grid.hpp"

#include <algorithm>
#include <tuple>

#include "base/assert.hpp"

namespace shoal::core::planning {

namespace {

__extension__ using wide = unsigned __int128;

/// What ranks cuts of one bottleneck. Sums of these keep their order, so each prefix of a best cut
/// is a best one.
struct merit {
  wide squares = 0;
  std::uint64_t boundary_bytes = 0;
  std::uint64_t moved_bytes = 0;
  bool operator<(const merit& other) const {
    return std::tie(squares, boundary_bytes, moved_bytes) <
           std::tie(other.squares, other.boundary_bytes, other.moved_bytes);
  }
};

}  // namespace

grid_partitioner::grid_partitioner(const std::vector<grid_block>& blocks)
  : block_count_(static_cast<std::uint32_t>(blocks.size())), time_{0}, last_time_{0}, held_{0} {
  SHOAL_ASSERT(!blocks.empty());
  for (auto& b : blocks) {
    SHOAL_ASSERT(b.last_time_ns <= b.time_ns);
    time_.push_back(time_.back() + b.time_ns);
    last_time_.push_back(last_time_.back() + b.last_time_ns);
    held_.push_back(held_.back() + b.held_bytes);
    boundary_.push_back(b.boundary_bytes);
  }
  SHOAL_ASSERT(time_.back() < std::uint64_t{1} << 60);
}

std::uint64_t grid_partitioner::time_ns(index_range blocks, bool is_last) const {
  auto& sums = is_last ? last_time_ : time_;
  return sums[blocks.end] - sums[blocks.begin];
}

bool grid_partitioner::is_enough(std::uint64_t limit, stage_index stage_count,
                                 std::uint64_t& decides) const {
  // As far as all stages but the last can reach. Below that every border can be reached too, for
  // a run of blocks that fits can be divided; so only the furthest matters.
  std::uint32_t reach = 0;
  std::uint64_t longest = 0, next = UINT64_MAX;
  for (stage_index s = 0; s + 1 < stage_count && reach + 1 < block_count_; ++s) {
    auto begin = reach;
    while (reach + 1 < block_count_ && time_[reach + 1] - time_[begin] <= limit) ++reach;
    longest = std::max(longest, time_[reach] - time_[begin]);
    if (reach + 1 < block_count_) next = std::min(next, time_[reach + 1] - time_[begin]);
    if (reach == begin) break;
  }
  auto last = last_time_[block_count_] - last_time_[reach];
  bool enough = reach + 1 >= stage_count && last <= limit;
  if (last > limit) next = std::min(next, last);
  decides = enough ? std::max(longest, last) : next;
  return enough;
}

std::optional<std::uint64_t> grid_partitioner::bottleneck(stage_index stage_count) const {
  if (stage_count == 0 || stage_count > block_count_) return std::nullopt;
  // No cut is better than an even one of the least times. Both ends jump to sums that occur.
  std::uint64_t low = last_time_.back() / stage_count, high = time_.back(), decides = 0;
  if (is_enough(low, stage_count, decides)) return decides;
  low = decides;
  while (low < high) {
    auto middle = low + (high - low) / 2;
    (is_enough(middle, stage_count, decides) ? high : low) = decides;
  }
  return high;
}

std::optional<std::vector<index_range>> grid_partitioner::cut(
  stage_index stage_count, const std::vector<index_range>& present) const {
  auto limit = bottleneck(stage_count);
  if (!limit) return std::nullopt;
  auto moved = [&](stage_index s, index_range blocks) -> std::uint64_t {
    if (present.empty()) return 0;
    auto all = held_[blocks.end] - held_[blocks.begin];
    if (s >= present.size()) return all;
    auto begin = std::max(blocks.begin, present[s].begin);
    auto end = std::min(blocks.end, present[s].end);
    return begin < end ? all - (held_[end] - held_[begin]) : all;
  };
  // best[e]: of stages 0..s over [0, e). from[s][e]: where stage s then begins.
  constexpr auto nowhere = UINT32_MAX;
  std::vector<merit> best(block_count_ + 1), next(block_count_ + 1);
  std::vector from(stage_count, std::vector<std::uint32_t>(block_count_ + 1, nowhere));
  for (stage_index s = 0; s < stage_count; ++s) {
    bool is_last = s + 1 == stage_count;
    auto last_end = block_count_ - (stage_count - 1 - s);
    for (auto begin = s; begin < last_end; ++begin) {
      if (s == 0 ? begin != 0 : from[s - 1][begin] == nowhere) continue;
      for (auto end = is_last ? block_count_ : begin + 1; end <= last_end; ++end) {
        auto time = time_ns({begin, end}, is_last);
        if (time > *limit) break;
        auto m = best[begin];
        m.squares += wide{time} * time;
        m.boundary_bytes += s > 0 ? boundary_[begin] : 0;
        m.moved_bytes += moved(s, {begin, end});
        if (from[s][end] == nowhere || m < next[end]) next[end] = m, from[s][end] = begin;
      }
    }
    std::swap(best, next);
  }
  SHOAL_ASSERT(from.back()[block_count_] != nowhere);
  std::vector<index_range> ranges(stage_count);
  auto end = block_count_;
  for (auto s = stage_count; s-- > 0; end = ranges[s].begin) ranges[s] = {from[s][end], end};
  return ranges;
}

}  // namespace shoal::core::planning
