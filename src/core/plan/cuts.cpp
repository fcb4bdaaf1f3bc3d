#include "core/plan/cuts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.hpp"

namespace shoal::core::planning {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Fills each stage up to `limit` from the left, leaving a block for every later one. If any cut
/// meets the limit, this one does: no stage could begin further right.
std::optional<std::vector<index_range>> fill_up(std::uint32_t block_count, stage_index stage_count,
                                                double limit, const stage_seconds& seconds) {
  std::vector<index_range> cut;
  std::uint32_t begin = 0;
  for (stage_index s = 0; s < stage_count; ++s) {
    bool is_last = s + 1 == stage_count;
    auto low = is_last ? block_count : begin + 1, high = block_count - (stage_count - 1 - s);
    if (!(seconds(s, {begin, low}) <= limit)) return std::nullopt;
    while (low < high) {  // the largest end within the limit
      auto middle = low + (high - low + 1) / 2;
      if (seconds(s, {begin, middle}) <= limit)
        low = middle;
      else
        high = middle - 1;
    }
    cut.push_back({begin, low});
    begin = low;
  }
  return cut;
}

double slowest(const std::vector<index_range>& cut, const stage_seconds& seconds) {
  double worst = 0;
  for (stage_index s = 0; s < cut.size(); ++s) worst = std::max(worst, seconds(s, cut[s]));
  return worst;
}

}  // namespace

std::optional<std::vector<index_range>> cut_blocks(std::uint32_t block_count, stage_index stage_count,
                                                   const stage_seconds& seconds) {
  SHOAL_ASSERT(stage_count >= 1);
  if (stage_count > block_count) return std::nullopt;
  auto best = fill_up(block_count, stage_count, std::numeric_limits<double>::max(), seconds);
  if (!best) return best;
  double high = slowest(*best, seconds), low = 0;
  // Halving, with the upper end pulled to what the cut really takes: exact once the two are closer
  // than any two sums of block times.
  for (int round = 0; round < 60 && high - low > 1e-7 * high; ++round) {
    auto middle = low + (high - low) / 2;
    if (auto cut = fill_up(block_count, stage_count, middle, seconds)) {
      high = slowest(*cut, seconds);
      best = std::move(cut);
    } else {
      low = middle;
    }
  }
  return best;
}

std::optional<std::vector<index_range>> recut_blocks(
  std::uint32_t block_count, stage_index stage_count, double limit, const stage_seconds& seconds,
  const std::function<std::uint64_t(stage_index, index_range)>& value) {
  if (stage_count > block_count) return std::nullopt;
  // best[s][e]: the most that stages 0..s are worth when they cover [0, e); one more than that, so
  // that 0 says "cannot be". from[s][e]: where stage s then begins.
  using table = std::vector<std::vector<std::uint64_t>>;
  table best(stage_count, std::vector<std::uint64_t>(block_count + 1, 0)), from = best;
  for (stage_index s = 0; s < stage_count; ++s)
    for (std::uint32_t begin = s; begin < block_count; ++begin) {
      auto before = s > 0 ? best[s - 1][begin] : begin == 0 ? 1 : 0;
      if (before == 0) continue;
      auto last_end = block_count - (stage_count - 1 - s);
      for (auto end = begin + 1; end <= last_end && seconds(s, {begin, end}) <= limit; ++end)
        if (auto worth = before + value(s, {begin, end}); worth > best[s][end]) {
          best[s][end] = worth;
          from[s][end] = begin;
        }
    }
  auto end = block_count;
  if (best.back()[end] == 0) return std::nullopt;
  std::vector<index_range> cut(stage_count);
  for (auto s = stage_count; s-- > 0;) {
    cut[s] = {static_cast<std::uint32_t>(from[s][end]), end};
    end = cut[s].begin;
  }
  return cut;
}

std::optional<std::vector<index_range>> share_out(const std::vector<pace>& paces, std::uint32_t count,
                                                  std::uint32_t grain) {
  auto grains = (count - 1) / grain + 1;
  if (paces.empty() || paces.size() > grains) return std::nullopt;
  // How many grains each replica finishes by `time`; never none.
  auto by = [&](double time, const pace& p) {
    auto m = (time - p.fill_s) / p.seconds_each - p.lead_in;
    return std::max<std::uint64_t>(1, m <= 0 ? 0 : static_cast<std::uint64_t>(std::min(m, 1e9)) / grain);
  };
  auto enough = [&](double time) {
    std::uint64_t sum = 0;
    for (auto& p : paces) sum += by(time, p);
    return sum >= grains;
  };
  double low = 0, high = infinite;
  for (auto& p : paces) high = std::min(high, p.finish(grains * grain) * (1 + 1e-9));
  for (int round = 0; round < 60 && high - low > 1e-9 * high; ++round) {
    auto middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
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
  std::vector<index_range> ranges;
  std::uint32_t begin = 0;
  for (auto share : shares) {
    auto end = std::min(count, begin + static_cast<std::uint32_t>(share) * grain);
    ranges.push_back({begin, end});
    begin = end;
  }
  return ranges;
}

}  // namespace shoal::core::planning
