#pragma once
// The schedule language: which rank does what, in which order, for one batch.
//
//   interleaved 1F1B, 2 ranks, 4 virtual stages (looped placement), 4 micro-batches:
//     rank 0:  0F0 0F1 2F0 2F1 0F2 ...        virtual stages 0 and 2
//     rank 1:  1F0 1F1 3F0 3B0 1F2 ...        virtual stages 1 and 3
//
// A cell is <virtual stage><operation><micro-batch>, as in torch.distributed.pipelining's tables.
// Two layers share these types: the compute-only order that generators write, and the executable
// lists that `lower` derives from it (sends, receives, reductions, optimizer), a pure function, so
// that all ranks derive the same and compare its hash.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/layout.hpp"

namespace shoal::core {

/// A position in the pipeline: what computes. On a node when the plan is run.
using rank_index = std::uint32_t;
/// A run of blocks along the chain; 0 has the input, the last one the loss.
using virtual_stage = std::uint32_t;

enum class operation : std::uint8_t {
  forward,             ///< F
  backward,            ///< B: input and weight gradients at once
  input_gradient,      ///< I
  weight_gradient,     ///< W
  recompute,           ///< R: forward again from the stashed input
  send_activation,     ///< SEND_F, to the rank of the next virtual stage
  receive_activation,  ///< RECV_F, from the rank of the virtual stage before
  send_gradient,       ///< SEND_B, to the rank of the virtual stage before
  receive_gradient,    ///< RECV_B
  reduce,              ///< REDUCE_GRAD: sum gradients over replicas (no micro-batch)
  tie,                 ///< TIE: add the gradients of tied parameters (no micro-batch)
  norm,                ///< NORM: the global norm, and whether all is finite (no micro-batch)
  optimize,            ///< OPT: apply (no micro-batch, or that of an update after each backward)
  drop_version,        ///< DROP: the weights of `version` are no longer needed
  morph_point,         ///< MORPH_OK: nothing is outstanding, the layout may change here
};

/// No micro-batch, or no version.
constexpr std::uint32_t none = UINT32_MAX;

/// How many operations there are.
constexpr std::size_t operation_count = 15;

/// Whether the operation computes, and so is part of the order that generators write.
constexpr bool is_compute(operation what) { return what <= operation::recompute; }
constexpr bool is_send(operation what) {
  return what == operation::send_activation || what == operation::send_gradient;
}
constexpr bool is_receive(operation what) {
  return what == operation::receive_activation || what == operation::receive_gradient;
}
/// Whether a cell must name a micro-batch; OPT alone may or may not.
constexpr bool has_micro_batch(operation what) { return what <= operation::receive_gradient; }

/// Limits on a plan, whoever wrote it.
constexpr std::uint32_t plan_ranks_max = 4096;
constexpr std::uint32_t plan_stages_max = 8192;
constexpr std::uint32_t plan_micro_batches_max = 65536;
constexpr std::size_t plan_cells_max = std::size_t{1} << 24;

struct cell {
  operation what = operation::forward;
  virtual_stage stage = 0;
  micro_batch_index micro_batch = none;
  /// Weight version that F reads or B belongs to; `none` where only one exists.
  std::uint32_t version = none;
  /// Cells with the same group number, next to each other, overlap (torch's OVERLAP_F_B).
  std::uint32_t group = none;
  friend auto operator<=>(const cell&, const cell&) = default;
};

/// When weights change, and which ones a backward pass uses.
enum class weight_semantics : std::uint8_t {
  flush,            ///< once a batch, pipeline empty: one version
  stash,            ///< PipeDream: after every backward; B uses the version its F used
  vertical_sync,    ///< PipeDream: one version travels with the micro-batch
  double_buffered,  ///< PipeDream-2BW: once a batch, without a flush; exactly one batch stale
};

/// Who may deviate from the written order when its next cell is not ready.
struct order_policy {
  bool opportunistic = false;  ///< Varuna: take the earliest ready F when the head (R, B) must wait
  std::uint32_t live_max = none;  ///< inputs of micro-batches held at most, on each rank
  friend bool operator==(const order_policy&, const order_policy&) = default;
};

/// A whole schedule. `chain_of` names for each micro-batch the chain (direction) that it runs
/// through, all 0 when empty; `placement[chain][virtual stage]` is the rank that holds it.
struct pipeline_plan {
  std::string name;
  std::uint32_t micro_batches = 0;
  std::vector<std::vector<rank_index>> placement;
  std::vector<std::uint32_t> chain_of;
  std::vector<std::vector<cell>> ranks;  ///< in program order
  weight_semantics weights = weight_semantics::flush;
  order_policy policy;
  /// Updates of the weights: micro-batches [k n, (k+1) n) make batch k, n = micro_batches/batches.
  /// With `stash` and `vertical_sync` every micro-batch is an update of its own.
  std::uint32_t batches = 1;

  rank_index rank_count() const { return static_cast<rank_index>(ranks.size()); }
  virtual_stage stage_count() const {
    return placement.empty() ? 0 : static_cast<virtual_stage>(placement[0].size());
  }
  std::uint32_t chain(micro_batch_index m) const { return chain_of.empty() ? 0 : chain_of[m]; }
  micro_batch_index batch_size() const { return micro_batches / batches; }
  rank_index rank_of(virtual_stage s, micro_batch_index m) const { return placement[chain(m)][s]; }
  friend bool operator==(const pipeline_plan&, const pipeline_plan&) = default;
};

}  // namespace shoal::core
