#include "core/plan/partition_order.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace shoal::core::planning {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

struct order_entry {
  double bottleneck = infinite;
  ordered_stage first;
};

/// Entries by (first block, first device that may be used, stages).
class order_table {
public:
  order_table(const std::vector<chain_block>& blocks, const std::vector<ordered_device>& devices,
              const ordered_options& options)
    : blocks_(blocks), devices_(devices), options_(options) {
    depth_ = static_cast<std::uint32_t>(std::min(devices.size(), blocks.size()));
    entries_.resize((blocks.size() + 1) * (devices.size() + 1) * (depth_ + 1));
    for (auto i = count(); i-- > 0;)
      for (auto d = static_cast<std::uint32_t>(devices_.size()); d-- > 0;)
        for (std::uint32_t s = 1; s <= depth_; ++s) fill(i, d, s);
  }

  std::optional<ordered_cut> best() const {
    std::uint32_t stages = 0;
    auto least = infinite;
    for (std::uint32_t s = 1; s <= depth_; ++s)
      if (at(0, 0, s).bottleneck < least) least = at(0, 0, s).bottleneck, stages = s;
    if (stages == 0) return std::nullopt;
    ordered_cut made;
    made.bottleneck = least;
    for (std::uint32_t i = 0, d = 0; i < count(); --stages) {
      made.stages.push_back(at(i, d, stages).first);
      i = made.stages.back().blocks.end;
      d = made.stages.back().device + 1;
    }
    return made;
  }

private:
  std::uint32_t count() const { return static_cast<std::uint32_t>(blocks_.size()); }
  std::size_t index(std::uint32_t i, std::uint32_t d, std::uint32_t s) const {
    return (i * (devices_.size() + 1) + d) * (depth_ + 1) + s;
  }
  const order_entry& at(std::uint32_t i, std::uint32_t d, std::uint32_t s) const {
    return entries_[index(i, d, s)];
  }

  void fill(std::uint32_t i, std::uint32_t d, std::uint32_t s) {
    auto best = at(i, d + 1, s);  // without this device
    double forward = 0, compute = 0, held = 0, stash = 0;
    auto transfer = i > 0 && options_.bytes_per_time > 0
                      ? 2 * blocks_[i].boundary_bytes / options_.bytes_per_time
                      : 0.0;
    auto in_flight = std::min(options_.micro_batches, s);
    for (auto end = i + 1; end <= count(); ++end) {
      auto& b = blocks_[end - 1];
      forward += b.forward, compute += b.forward + b.backward;
      held += b.held_bytes, stash += b.stash_bytes;
      bool is_last = end == count();
      // Only the last of the stages may, and must, end with the chain.
      if (is_last != (s == 1)) continue;
      auto after = is_last ? 0 : at(end, d + 1, s - 1).bottleneck;
      for (bool again : {false, true}) {
        if (again && (is_last || !options_.may_recompute)) continue;
        auto kept = again ? in_flight * blocks_[i].boundary_bytes + stash : in_flight * stash;
        if (held + kept > devices_[d].memory_bytes) continue;
        auto time = (again ? compute + forward : compute) / devices_[d].speed;
        auto slowest = std::max({after, time, transfer});
        if (slowest < best.bottleneck) best = {slowest, {d, {i, end}, again}};
      }
    }
    entries_[index(i, d, s)] = best;
  }

  const std::vector<chain_block>& blocks_;
  const std::vector<ordered_device>& devices_;
  const ordered_options& options_;
  std::uint32_t depth_ = 1;
  std::vector<order_entry> entries_;
};

/// Micro-batches that a replica ends within `time`.
std::uint64_t done_by(double time, const pace& p) {
  // A hair more, so that the moment of an end counts as reached.
  auto m = (time * (1 + 1e-12) - p.fill_s) / p.seconds_each - p.lead_in;
  return m < 1 ? 0 : static_cast<std::uint64_t>(std::min(m, 1e9));
}

/// The most micro-batches that nodes end within `time`, and the depths for it. chosen[k] is the
/// depth of one replica among k nodes, 0 when one node of them stays idle.
struct packing {
  std::vector<std::uint64_t> done;
  std::vector<std::uint32_t> chosen;
  packing(const std::vector<pace>& paces, std::uint32_t nodes, double time)
    : done(nodes + 1, 0), chosen(nodes + 1, 0) {
    for (std::uint32_t k = 1; k <= nodes; ++k) {
      done[k] = done[k - 1];
      for (std::uint32_t p = 1; p <= std::min<std::size_t>(k, paces.size()); ++p)
        if (auto m = done_by(time, paces[p - 1]); m > 0 && done[k - p] + m > done[k])
          done[k] = done[k - p] + m, chosen[k] = p;
    }
  }
};

}  // namespace

std::optional<ordered_cut> cut_in_order(const std::vector<chain_block>& blocks,
                                        const std::vector<ordered_device>& devices,
                                        const ordered_options& options) {
  SHOAL_ASSERT(!blocks.empty() && !devices.empty());
  return order_table(blocks, devices, options).best();
}

std::optional<replica_set> best_replicas(const std::vector<pace>& paces, std::uint32_t nodes,
                                         std::uint32_t micro_batches) {
  if (paces.empty() || nodes == 0 || micro_batches == 0) return std::nullopt;
  double low = 0, high = paces[0].finish(micro_batches);
  for (int round = 0; round < 64 && high - low > 1e-12 * high; ++round) {
    auto middle = low + (high - low) / 2;
    (packing(paces, nodes, middle).done[nodes] >= micro_batches ? high : low) = middle;
  }
  packing packed(paces, nodes, high);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> chosen;  // depth and share
  replica_set made;
  std::uint64_t left = micro_batches;
  for (auto k = nodes; k > 0 && left > 0; k -= std::max(1u, packed.chosen[k])) {
    if (packed.chosen[k] == 0) continue;
    auto& p = paces[packed.chosen[k] - 1];
    auto share = static_cast<std::uint32_t>(std::min(left, done_by(high, p)));
    chosen.emplace_back(packed.chosen[k], share);
    made.finish = std::max(made.finish, p.finish(share));
    left -= share;
  }
  SHOAL_ASSERT(left == 0);
  std::sort(chosen.rbegin(), chosen.rend());
  for (auto& [depth, share] : chosen) made.depths.push_back(depth), made.shares.push_back(share);
  return made;
}

}  // namespace shoal::core::planning
