#include "core/plan/partition_replicated.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"

namespace shoal::core::planning {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Sums of the blocks before the index.
struct chain_sums {
  std::vector<double> forward{0}, compute{0}, parameters{0}, held{0}, stash{0}, boundary;

  explicit chain_sums(const std::vector<chain_block>& blocks) {
    for (auto& b : blocks) {
      forward.push_back(forward.back() + b.forward);
      compute.push_back(compute.back() + b.forward + b.backward);
      parameters.push_back(parameters.back() + b.parameter_bytes);
      held.push_back(held.back() + b.held_bytes);
      stash.push_back(stash.back() + b.stash_bytes);
      boundary.push_back(b.boundary_bytes);
    }
  }
  std::uint32_t count() const { return static_cast<std::uint32_t>(boundary.size()); }
  static double over(const std::vector<double>& sums, index_range r) {
    return sums[r.end] - sums[r.begin];
  }
};

/// How many devices and stages begin with a stage.
struct from_here {
  std::uint32_t devices = 0;
  std::uint32_t stages = 0;
};

double needed_bytes(const chain_sums& sums, const replicated_options& options,
                    const replicated_stage& stage, from_here left) {
  bool by_devices = options.stash == stash_rule::by_devices;
  double in_flight = by_devices ? (left.devices + stage.replicas - 1) / stage.replicas
                                : std::min(options.micro_batches, left.stages);
  auto held = chain_sums::over(sums.held, stage.blocks);
  auto stash = chain_sums::over(sums.stash, stage.blocks);
  auto kept =
    stage.recompute ? in_flight * sums.boundary[stage.blocks.begin] + stash : in_flight * stash;
  return (by_devices ? in_flight : 1) * held + kept;
}

/// What a stage takes; infinite when it does not fit.
double time_of(const chain_sums& sums, const replicated_options& options,
               const replicated_stage& stage, from_here left) {
  auto& devices = options.devices[stage.device_class];
  if (devices.memory_bytes < infinite &&
      needed_bytes(sums, options, stage, left) > devices.memory_bytes)
    return infinite;
  double q = stage.replicas;
  auto compute = chain_sums::over(sums.compute, stage.blocks);
  if (stage.recompute) compute += chain_sums::over(sums.forward, stage.blocks);
  compute /= devices.speed;
  if (options.bytes_per_time <= 0) return compute / q;
  auto sync =
    4 * (q - 1) * chain_sums::over(sums.parameters, stage.blocks) / (q * options.bytes_per_time);
  auto busy = (options.sync == sync_rule::added ? compute + sync : std::max(compute, sync)) / q;
  if (!options.transfers || stage.blocks.begin == 0) return busy;
  return std::max(busy, 2 * sums.boundary[stage.blocks.begin] / (q * options.bytes_per_time));
}

/// The best for the blocks from one on: bottleneck, and its first stage.
struct entry {
  double bottleneck = infinite;
  replicated_stage first;
};

/// Entries by (first block, devices of each class, stages), the devices as one number of mixed
/// radix.
class table {
public:
  table(const chain_sums& sums, const replicated_options& options)
    : sums_(sums), options_(options) {
    std::uint32_t devices = 0;
    bool limited = false;
    for (auto& c : options.devices) {
      SHOAL_ASSERT(c.speed > 0);
      strides_.push_back(states_);
      states_ *= c.count + 1;
      devices += c.count;
      limited = limited || c.memory_bytes < infinite;
    }
    SHOAL_ASSERT(devices >= 1);
    by_position_ = limited && options.stash == stash_rule::by_stages;
    depth_ = by_position_ ? std::min(devices, sums.count()) : 1;
    entries_.resize(std::size_t{sums.count()} * states_ * (depth_ + 1));
    for (auto i = sums_.count(); i-- > 0;)
      for (std::uint32_t k = 1; k < states_; ++k)
        for (std::uint32_t s = 1; s <= depth_; ++s) fill(i, k, s);
  }

  std::optional<replicated_cut> best() const {
    std::uint32_t state = 0, stages = 0;
    auto least = infinite;
    for (std::uint32_t k = 1; k < states_; ++k)
      for (std::uint32_t s = 1; s <= depth_; ++s) {
        auto here = at(0, k, s).bottleneck;
        if (here < least || (here == least && here < infinite && devices(k) < devices(state)))
          least = here, state = k, stages = s;
      }
    if (state == 0) return std::nullopt;
    replicated_cut made;
    made.bottleneck = least;
    for (std::uint32_t i = 0; i < sums_.count(); i = made.stages.back().blocks.end) {
      made.stages.push_back(at(i, state, stages).first);
      state -= made.stages.back().replicas * strides_[made.stages.back().device_class];
      if (by_position_) --stages;
    }
    return made;
  }

private:
  std::size_t index(std::uint32_t i, std::uint32_t k, std::uint32_t s) const {
    return (std::size_t{i} * states_ + k) * (depth_ + 1) + s;
  }
  const entry& at(std::uint32_t i, std::uint32_t k, std::uint32_t s) const {
    return entries_[index(i, k, s)];
  }
  std::uint32_t count_of(std::uint32_t state, std::size_t device_class) const {
    return state / strides_[device_class] % (options_.devices[device_class].count + 1);
  }
  std::uint32_t devices(std::uint32_t state) const {
    std::uint32_t sum = 0;
    for (std::size_t c = 0; c < strides_.size(); ++c) sum += count_of(state, c);
    return sum;
  }

  /// Blocks [i, N) on exactly the devices of `state`, and in exactly s stages where memory goes by
  /// position.
  void fill(std::uint32_t i, std::uint32_t state, std::uint32_t s) {
    entry best;
    auto total = devices(state);
    for (std::uint32_t c = 0; c < strides_.size(); ++c)
      for (std::uint32_t q = 1; q <= std::min(count_of(state, c), options_.replicas_max); ++q) {
        bool is_last = q == total;
        if (by_position_ && is_last != (s == 1)) continue;
        if (is_last)
          offer(best, {{i, sums_.count()}, q, false, c}, 0, {total, s});
        else
          extend(best, {{i, i}, q, false, c}, state - q * strides_[c], {total, s});
      }
    entries_[index(i, state, s)] = best;
  }

  /// Tries all ends of a first stage, the rest being on the devices of `rest`.
  void extend(entry& best, replicated_stage stage, std::uint32_t rest, from_here left) const {
    auto deeper = by_position_ ? left.stages - 1 : left.stages;
    for (auto end = stage.blocks.begin + 1; end < sums_.count(); ++end) {
      auto after = at(end, rest, deeper).bottleneck;
      if (after >= best.bottleneck) continue;
      stage.blocks.end = end;
      for (bool again : {false, true}) {
        stage.recompute = again;
        if (!again || options_.may_recompute) offer(best, stage, after, left);
      }
    }
  }

  void offer(entry& best, const replicated_stage& stage, double after, from_here left) const {
    auto slowest = std::max(after, time_of(sums_, options_, stage, left));
    if (slowest < best.bottleneck) best = {slowest, stage};
  }

  const chain_sums& sums_;
  const replicated_options& options_;
  bool by_position_ = false;
  std::uint32_t depth_ = 1, states_ = 1;
  std::vector<std::uint32_t> strides_;
  std::vector<entry> entries_;
};

}  // namespace

std::uint32_t replicated_cut::devices() const {
  std::uint32_t sum = 0;
  for (auto& s : stages) sum += s.replicas;
  return sum;
}

std::optional<replicated_cut> cut_replicated(const std::vector<chain_block>& blocks,
                                             const replicated_options& options) {
  SHOAL_ASSERT(!blocks.empty() && !options.devices.empty());
  chain_sums sums(blocks);
  return table(sums, options).best();
}

}  // namespace shoal::core::planning
