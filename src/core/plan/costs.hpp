#pragma once
// A profile as sums over runs of blocks: what a stage takes in time and memory, in O(1).

#include <cstdint>
#include <span>
#include <vector>

#include "core/pipeline/link_table.hpp"
#include "core/plan/plan.hpp"

namespace shoal::core::planning {

/// Times in seconds, of one micro-batch, on a node of speed 1.
class costs {
public:
  explicit costs(const plan_profile& profile);

  std::uint32_t block_count() const { return static_cast<std::uint32_t>(boundary_bytes_.size()); }
  index_range all_blocks() const { return {0, block_count()}; }

  /// Forward and backward of a stage, and forward again where it recomputes.
  double seconds(index_range blocks, bool recompute) const {
    auto time = seconds_[blocks.end] - seconds_[blocks.begin];
    return recompute ? time + forward_seconds(blocks) : time;
  }
  /// The forward pass alone.
  double forward_seconds(index_range blocks) const {
    return forward_seconds_[blocks.end] - forward_seconds_[blocks.begin];
  }
  /// How long the link is taken by the input of `first`, one way.
  double transfer_seconds(block_index first) const;
  double latency_seconds() const { return latency_s_; }
  /// The same for the simulator.
  link_table link() const;
  std::uint64_t boundary_bytes(block_index first) const { return boundary_bytes_[first]; }
  std::uint64_t parameter_bytes(index_range blocks) const {
    return parameter_bytes_[blocks.end] - parameter_bytes_[blocks.begin];
  }
  /// How long so many bytes take on a link.
  double bulk_seconds(std::uint64_t bytes) const {
    return bytes_per_s_ > 0 ? static_cast<double>(bytes) / bytes_per_s_ : 0;
  }
  /// Exchange of the gradients of a stage among `replica_count` holders, of which the one with most
  /// pieces sends `pieces` for each gradient.
  double exchange_seconds(index_range blocks, std::uint32_t replica_count,
                          std::uint32_t pieces) const;

  /// Parameters and optimizer state: what moves when a stage moves.
  std::uint64_t held_bytes(index_range blocks) const;
  /// As `stage_bytes`, of a stage with those chunks.
  std::uint64_t needed_bytes(std::span<const index_range> chunks, std::uint32_t stash_count,
                             std::uint32_t slot_count, bool recompute) const;
  std::uint64_t needed_bytes(index_range blocks, std::uint32_t stash_count,
                             std::uint32_t slot_count, bool recompute) const {
    return needed_bytes({&blocks, 1}, stash_count, slot_count, recompute);
  }

private:
  double bytes_per_s_;  // 0 is unlimited
  double latency_s_;
  // Sums over blocks before the index; one longer than there are blocks.
  std::vector<double> seconds_, forward_seconds_;
  std::vector<std::uint64_t> parameter_bytes_, state_bytes_, stash_bytes_;
  std::vector<std::uint64_t> boundary_bytes_;  // of each block
};

}  // namespace shoal::core::planning
