#include "core/plan/costs.hpp"

#include <algorithm>
#include <chrono>

#include "base/assert.hpp"

namespace shoal::core {

namespace {

struct stage_sums {
  std::uint64_t parameter_bytes = 0;
  std::uint64_t state_bytes = 0;
  std::uint64_t stash_bytes = 0;     // of one micro-batch, complete
  std::uint64_t boundary_bytes = 0;  // of one micro-batch, the inputs of all chunks
  std::uint64_t chunks = 0;
};

/// `stash_count` passes are spread over the chunks as evenly as can be.
std::uint64_t bytes_of(const stage_sums& sums, std::uint32_t stash_count, std::uint32_t slot_count,
                       bool recompute) {
  // Weights, the gradient of the micro-batch at hand, the partial sums.
  auto weights = sums.parameter_bytes * (2 + std::uint64_t{slot_count});
  auto of_passes = [&](std::uint64_t bytes) {
    return (stash_count * bytes + sums.chunks - 1) / sums.chunks;
  };
  // With recompute only inputs wait, and one pass is complete while it runs backward.
  auto stash =
    recompute ? of_passes(sums.boundary_bytes) + (sums.stash_bytes + sums.chunks - 1) / sums.chunks
              : of_passes(sums.stash_bytes);
  return process_reserve_bytes + weights + sums.state_bytes + stash;
}

}  // namespace

std::uint64_t stage_bytes(const plan_profile& profile, const block_runs& blocks,
                          std::uint32_t stash_count, std::uint32_t slot_count, bool recompute) {
  stage_sums sums{.chunks = blocks.chunks().size()};
  SHOAL_ASSERT(sums.chunks > 0);
  for (auto b : blocks.all()) {
    auto& block = profile.blocks.at(b);
    sums.parameter_bytes += block.parameter_bytes;
    sums.state_bytes += block.state_bytes;
    sums.stash_bytes += block.stash_bytes;
  }
  for (auto chunk : blocks.chunks())
    sums.boundary_bytes += profile.blocks[chunk.begin].boundary_bytes;
  return bytes_of(sums, stash_count, slot_count, recompute);
}

namespace planning {

costs::costs(const plan_profile& profile)
  : bytes_per_s_(profile.link_bytes_per_s),
    latency_s_(std::chrono::duration<double>(profile.link_latency).count()),
    seconds_{0},
    forward_seconds_{0},
    parameter_bytes_{0},
    state_bytes_{0},
    stash_bytes_{0} {
  for (auto& block : profile.blocks) {
    // A block that was not measured still counts as work, so that blocks spread.
    auto time = std::max(block.forward + block.backward, nanoseconds(1));
    seconds_.push_back(seconds_.back() + std::chrono::duration<double>(time).count());
    forward_seconds_.push_back(forward_seconds_.back() +
                               std::chrono::duration<double>(block.forward).count());
    parameter_bytes_.push_back(parameter_bytes_.back() + block.parameter_bytes);
    state_bytes_.push_back(state_bytes_.back() + block.state_bytes);
    stash_bytes_.push_back(stash_bytes_.back() + block.stash_bytes);
    boundary_bytes_.push_back(block.boundary_bytes);
  }
}

double costs::transfer_seconds(block_index first) const {
  return bulk_seconds(boundary_bytes_[first]);
}

double costs::exchange_seconds(index_range blocks, std::uint32_t replica_count,
                               std::uint32_t pieces) const {
  if (replica_count == 1 || bytes_per_s_ <= 0) return 0;
  auto bytes = static_cast<double>(parameter_bytes_[blocks.end] - parameter_bytes_[blocks.begin]);
  // Each holder owns a shard: all others' pieces of it come in, its total goes out to them.
  double share = static_cast<double>(replica_count - 1) / static_cast<double>(replica_count);
  return share * bytes * (static_cast<double>(pieces) + 1) / bytes_per_s_ + 2 * latency_s_;
}

link_table costs::link() const {
  return link_table::flat(static_cast<std::int64_t>(latency_s_ * 1e9), bytes_per_s_);
}

std::uint64_t costs::held_bytes(index_range blocks) const {
  if (blocks.end <= blocks.begin) return 0;
  return parameter_bytes_[blocks.end] - parameter_bytes_[blocks.begin] + state_bytes_[blocks.end] -
         state_bytes_[blocks.begin];
}

std::uint64_t costs::needed_bytes(std::span<const index_range> chunks, std::uint32_t stash_count,
                                  std::uint32_t slot_count, bool recompute) const {
  stage_sums sums{.chunks = chunks.size()};
  for (auto blocks : chunks) {
    sums.parameter_bytes += parameter_bytes_[blocks.end] - parameter_bytes_[blocks.begin];
    sums.state_bytes += state_bytes_[blocks.end] - state_bytes_[blocks.begin];
    sums.stash_bytes += stash_bytes_[blocks.end] - stash_bytes_[blocks.begin];
    sums.boundary_bytes += boundary_bytes_[blocks.begin];
  }
  return bytes_of(sums, stash_count, slot_count, recompute);
}

}  // namespace planning

}  // namespace shoal::core
