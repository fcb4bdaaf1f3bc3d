#include "core/plan/cuts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.hpp"

namespace shoal::core::planning {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// As many blocks to each stage as can be: how fast any sensible cut is at least.
double slowest_of_even_cut(std::uint32_t block_count, stage_index stage_count,
                           const stage_seconds& seconds) {
  double worst = 0;
  for (stage_index s = 0; s < stage_count; ++s) {
    auto border = [&](std::uint64_t i) {
      return static_cast<std::uint32_t>(i * block_count / stage_count);
    };
    worst = std::max(worst, seconds(s, {border(s), border(s + 1)}));
  }
  return worst;
}

/// Where each stage begins in the best cut: of stages 0..s over [0, e), stage s at at(s, e).
class border_table {
public:
  border_table(stage_index stage_count, std::uint32_t block_count)
    : stage_count_(stage_count),
      block_count_(block_count),
      begins_(std::size_t{stage_count} * (block_count + 1), 0) {}

  std::uint32_t& at(stage_index s, std::uint32_t end) {
    return begins_[std::size_t{s} * (block_count_ + 1) + end];
  }
  /// Of all stages over all blocks, read backwards.
  std::vector<index_range> cut() {
    std::vector<index_range> ranges(stage_count_);
    auto end = block_count_;
    for (auto s = stage_count_; s-- > 0; end = ranges[s].begin) ranges[s] = {at(s, end), end};
    return ranges;
  }

private:
  stage_index stage_count_;
  std::uint32_t block_count_;
  std::vector<std::uint32_t> begins_;
};

std::vector<index_range> ranges_of(const std::vector<std::uint64_t>& shares, std::uint32_t count,
                                   std::uint32_t grain) {
  std::vector<index_range> ranges;
  std::uint32_t begin = 0;
  for (auto share : shares) {
    auto end = std::min(count, begin + static_cast<std::uint32_t>(share) * grain);
    ranges.push_back({begin, end});
    begin = end;
  }
  return ranges;
}

}  // namespace

std::optional<std::vector<index_range>> cut_blocks(std::uint32_t block_count,
                                                   stage_index stage_count,
                                                   const stage_seconds& seconds) {
  SHOAL_ASSERT(stage_count >= 1);
  if (stage_count > block_count) return std::nullopt;
  // best[e]: the slowest of stages 0..s over [0, e) in the best cut. Filling stages up from the
  // left under a limit would be quicker, but it is wrong where speeds differ: no stage may be
  // empty, so a slow node may need the small block that the node before it would take.
  auto bound = slowest_of_even_cut(block_count, stage_count, seconds);
  std::vector<double> best(block_count + 1, infinite), next;
  border_table from(stage_count, block_count);
  best[0] = 0;
  for (stage_index s = 0; s < stage_count; ++s) {
    next.assign(block_count + 1, infinite);
    auto last_end = block_count - (stage_count - 1 - s);
    for (auto begin = s; begin < last_end; ++begin) {
      if (best[begin] == infinite) continue;
      for (auto end = s + 1 == stage_count ? block_count : begin + 1; end <= last_end; ++end) {
        auto time = seconds(s, {begin, end});
        if (time > bound || time == infinite) break;
        if (auto slowest = std::max(best[begin], time); slowest < next[end]) {
          next[end] = slowest;
          from.at(s, end) = begin;
        }
      }
    }
    std::swap(best, next);
  }
  if (best[block_count] == infinite) return std::nullopt;
  return from.cut();
}

namespace {

/// A cut into parts, and what the stages take that have them by turns.
class chunk_cut {
public:
  chunk_cut(std::vector<index_range> parts, stage_index stage_count, const stage_seconds& seconds)
    : seconds_(seconds), parts_(std::move(parts)), loads_(stage_count, 0) {
    for (stage_index p = 0; p < parts_.size(); ++p) {
      times_.push_back(seconds_(p, parts_[p]));
      loads_[p % stage_count] += times_[p];
    }
    set_figures(loads_, slowest_, squares_);
  }

  std::vector<index_range> parts() && { return std::move(parts_); }

  /// Moves the borders before parts [first, last] by so many blocks, if that makes the slowest
  /// stage faster or, with that the same, the loads more even.
  bool shift(stage_index first, stage_index last, int by) {
    if (static_cast<int>(parts_[by < 0 ? first - 1 : last].size()) <= std::abs(by)) return false;
    auto shifted = [&](stage_index p) {
      auto part = parts_[p];
      if (p >= first) part.begin += static_cast<std::uint32_t>(by);
      if (p < last) part.end += static_cast<std::uint32_t>(by);
      return part;
    };
    tried_ = loads_;
    for (auto p = first - 1; p <= last; ++p)
      tried_[p % loads_.size()] += seconds_(p, shifted(p)) - times_[p];
    constexpr double less = 1 - 1e-9;
    double slowest = 0, squares = 0;
    set_figures(tried_, slowest, squares);
    if (!(slowest < slowest_ * less || (slowest <= slowest_ && squares < squares_ * less)))
      return false;
    for (auto p = first - 1; p <= last; ++p) {
      parts_[p] = shifted(p);
      times_[p] = seconds_(p, parts_[p]);
    }
    std::swap(loads_, tried_);
    slowest_ = slowest, squares_ = squares;
    return true;
  }

private:
  static void set_figures(const std::vector<double>& loads, double& slowest, double& squares) {
    slowest = squares = 0;
    for (auto l : loads) slowest = std::max(slowest, l), squares += l * l;
  }

  const stage_seconds& seconds_;
  std::vector<index_range> parts_;
  std::vector<double> times_, loads_, tried_;  // of parts, of stages
  double slowest_ = 0, squares_ = 0;
};

}  // namespace

std::optional<std::vector<index_range>> cut_chunks(std::uint32_t block_count,
                                                   stage_index stage_count,
                                                   std::uint32_t chunk_count,
                                                   const stage_seconds& seconds_of_part) {
  auto parts = cut_blocks(block_count, stage_count * chunk_count, seconds_of_part);
  if (!parts || chunk_count == 1) return parts;
  constexpr stage_index together = 4;  // neighbouring borders, so that whole parts can slide
  chunk_cut cut(std::move(*parts), stage_count, seconds_of_part);
  auto count = stage_count * chunk_count;
  for (bool better = true; better;) {
    better = false;
    for (stage_index first = 1; first < count; ++first)
      for (auto last = first; last < std::min(first + together, count); ++last)
        for (int by : {-1, 1, -2, 2}) better |= cut.shift(first, last, by);
  }
  return std::move(cut).parts();
}

std::optional<std::vector<index_range>> recut_blocks(
  std::uint32_t block_count, stage_index stage_count, double limit, const stage_seconds& seconds,
  const std::function<std::uint64_t(stage_index, index_range)>& value) {
  if (stage_count > block_count) return std::nullopt;
  // best[s][e]: the most that stages 0..s are worth when they cover [0, e); one more than that, so
  // that 0 says "cannot be".
  std::vector best(stage_count, std::vector<std::uint64_t>(block_count + 1, 0));
  border_table from(stage_count, block_count);
  for (stage_index s = 0; s < stage_count; ++s)
    for (std::uint32_t begin = s; begin < block_count; ++begin) {
      auto before = s > 0 ? best[s - 1][begin] : begin == 0 ? 1 : 0;
      if (before == 0) continue;
      auto last_end = block_count - (stage_count - 1 - s);
      auto first_end = s + 1 == stage_count ? block_count : begin + 1;
      for (auto end = first_end; end <= last_end && seconds(s, {begin, end}) <= limit; ++end)
        if (auto worth = before + value(s, {begin, end}); worth > best[s][end]) {
          best[s][end] = worth;
          from.at(s, end) = begin;
        }
    }
  if (best.back()[block_count] == 0) return std::nullopt;
  return from.cut();
}

std::optional<std::vector<index_range>> share_out(const std::vector<pace>& paces,
                                                  std::uint32_t count, std::uint32_t grain) {
  auto grains = (count - 1) / grain + 1;
  if (paces.empty() || paces.size() > grains) return std::nullopt;
  // How many grains each replica finishes by `time`; never none.
  auto by = [&](double time, const pace& p) {
    auto m = (time - p.fill_s) / p.seconds_each - p.lead_in;
    auto whole = m <= 0 ? 0 : static_cast<std::uint64_t>(std::min(m, 1e9));
    return std::max<std::uint64_t>(1, grain == 1 ? whole : whole / grain);
  };
  struct tally {
    std::uint64_t grains = 0;
    double last_s = 0;         // when the last of them ends
    double next_s = infinite;  // when the first that is not among them would
  };
  auto all_by = [&](double time) {
    tally t;
    for (auto& p : paces) {
      auto share = by(time, p);
      t.grains += share;
      auto end_s = p.finish(static_cast<std::uint32_t>(share * grain));
      if (end_s <= time) t.last_s = std::max(t.last_s, end_s);
      t.next_s = std::min(t.next_s, end_s + p.seconds_each * grain);
    }
    return t;
  };
  // If all could end at one moment, this would be it; in whole grains it is at most one later, but
  // for replicas that would rather have none.
  double turns = count, turns_per_s = 0, step_s = 0;
  for (auto& p : paces) {
    turns += p.lead_in + p.fill_s / p.seconds_each;
    turns_per_s += 1 / p.seconds_each;
    step_s = std::max(step_s, p.seconds_each * grain);
  }
  double low = turns / turns_per_s, high = low + step_s * (1 + 1e-9);
  auto at_low = all_by(low), at_high = all_by(high);
  if (at_low.grains >= grains) at_low.next_s = 0;
  for (; at_high.grains < grains; at_high = all_by(high)) high *= 2;
  // Once exactly enough are done, an earlier end would share them out in the same way; and where
  // nothing ends between, there is nothing to find.
  auto precision = 1e-9 * high;
  while (at_high.grains > grains && at_high.last_s - at_low.next_s > precision) {
    auto middle = at_low.next_s + (at_high.last_s - at_low.next_s) / 2;
    if (auto here = all_by(middle); here.grains >= grains)
      high = middle, at_high = here;
    else
      at_low = here;
  }
  std::vector<std::uint64_t> shares;
  std::uint64_t sum = 0;
  for (auto& p : paces) sum += shares.emplace_back(by(high, p));
  // Too many where several end at once: take from whoever ends last, the later of equals.
  for (; sum > grains; --sum) {
    std::size_t last = paces.size();
    double latest = -1;
    for (std::size_t r = 0; r < paces.size(); ++r) {
      auto end = paces[r].finish(static_cast<std::uint32_t>(shares[r] * grain));
      if (shares[r] > 1 && end >= latest * (1 - 1e-9)) latest = std::max(latest, end), last = r;
    }
    if (last == paces.size()) return std::nullopt;
    --shares[last];
  }
  if (sum < grains) return std::nullopt;
  return ranges_of(shares, count, grain);
}

}  // namespace shoal::core::planning
