#pragma once
// Cuts of a chain whose stages may be replicated one by one, each as often as suits it.
//
//   [blocks 0..30) on 15 devices  ->  [blocks 30..40) on 1      "15-1"
//
// PipeDream's form (Narayanan et al., SOSP'19, and its optimizer_graph.py): of a pipeline that
// never drains, the slowest part decides. A stage [i,j) on q devices takes, a micro-batch,
//
//   max(compute, sync) / q   with sync = 4 (q-1)/q * parameter bytes / rate,
//
// and its input 2 * bytes / (q * rate) on the link. The repository of PipeDream adds compute and
// sync instead of overlapping them; both are here. The table is filled from the last stage
// backwards, since how much a stage stashes depends on what comes after it. Devices may be of a few
// classes; a stage has devices of one, and the classes come in whatever order is best. For classes
// of n_1, n_2, ... devices, O(N^2 * product of (n_i + 1) * sum of n_i), times the number of stages
// where memory goes by position: meant for up to three classes and 64 devices.

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/layout.hpp"

namespace shoal::core::planning {

/// What one block costs; times in any one unit, rates in bytes by that unit.
struct chain_block {
  double forward = 0;
  double backward = 0;
  double parameter_bytes = 0;  ///< exchanged between replicas of the stage
  double held_bytes = 0;       ///< resident: parameters, gradients, optimizer state, workspace
  double stash_bytes = 0;      ///< kept for backward, a micro-batch, without recompute
  double boundary_bytes = 0;   ///< input of the block, a micro-batch
};

enum class sync_rule : std::uint8_t {
  overlapped,  ///< the longer of compute and sync counts
  added,       ///< their sum counts, as in PipeDream's repository
};

/// How many micro-batches a stage keeps at once.
enum class stash_rule : std::uint8_t {
  /// ceil(devices from here to the end / replicas of the stage): PipeDream's round robin; each
  /// with a version of the weights, so held_bytes count as often.
  by_devices,
  /// min(micro-batches, stages from here to the end): 1F1B; weights count once.
  by_stages,
};

/// Devices that are alike.
struct device_class {
  std::uint32_t count = 1;
  double speed = 1;                                               ///< of the blocks' times
  double memory_bytes = std::numeric_limits<double>::infinity();  ///< of each
};

struct replicated_options {
  std::vector<device_class> devices{device_class{}};
  double bytes_per_time = 0;  ///< of a link; 0: unlimited
  bool transfers = true;      ///< whether boundary bytes count
  sync_rule sync = sync_rule::overlapped;
  stash_rule stash = stash_rule::by_devices;
  std::uint32_t micro_batches = UINT32_MAX;  ///< by_stages keeps no more than that
  /// A stage may keep inputs alone and run forward again: slower, smaller. Never the last one.
  bool may_recompute = false;
  std::uint32_t replicas_max = UINT32_MAX;  ///< of a stage; 1: a straight pipeline
};

struct replicated_stage {
  index_range blocks;
  std::uint32_t replicas = 1;
  bool recompute = false;
  std::uint32_t device_class = 0;  ///< index into the options' devices
  friend bool operator==(const replicated_stage&, const replicated_stage&) = default;
};

struct replicated_cut {
  std::vector<replicated_stage> stages;
  double bottleneck = 0;  ///< time a micro-batch
  std::uint32_t devices() const;
};

/// The cut with the least bottleneck on at most the devices there are; of equals the one with
/// fewest devices. Nothing when none fits into memory. `blocks` not empty, at least one device,
/// each speed above 0.
std::optional<replicated_cut> cut_replicated(const std::vector<chain_block>& blocks,
                                             const replicated_options& options);

}  // namespace shoal::core::planning
