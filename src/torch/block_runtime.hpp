#pragma once
// One block in memory: parameters, gradient sums, optimizer state, and its forward and backward
// pass. The reference trainer and the stage runner both do their arithmetic through this class and
// nothing else, so that equal bits need no second proof.
//
// Every block is a differentiation graph of its own: inputs are detached, gradients of outputs come
// in and gradients of inputs go out as tensors. So a stage boundary between two blocks changes no
// kernel call and no bit.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.hpp"
#include "core/job.hpp"
#include "core/ports.hpp"
#include "core/reduction/tree.hpp"
#include "shoal/model.hpp"

namespace shoal::engine {

/// The stash of one forward pass: what backward needs. Movable; dropping it frees the graph.
struct forward_record {
  tensors inputs;   ///< detached; require gradients where floating and not of block 0
  tensors outputs;  ///< of the graph
};

/// Not thread-safe: owned by the trainer's thread.
class block_runtime {
public:
  /// Allocates parameters and optimizer state of block `index` of the chain, uninitialized.
  /// `job` and `description` must outlive this.
  block_runtime(const core::job_options& job, const block& description, block_index index);

  block_index index() const { return index_; }
  const block& description() const { return *description_; }

  /// Initial values from (seed, parameter name); optimizer state zero.
  void initialize();

  /// Forward with gradient. `data` as pass::data; `inputs` of block 0 are {data->inputs}, or {}.
  /// Random stream: (seed, step, micro-batch, block). Outputs, like the gradients that `backward`
  /// returns, are contiguous and begin at a multiple of 64 bytes, as a received tensor does in
  /// memory from at::empty: the kernels that read them see no difference. Throws c10::Error that
  /// names the block when the model's author broke a promise.
  forward_record forward(tensors inputs, const micro_batch* data, step_id step,
                         micro_batch_index g);
  /// Forward without gradient or dropout.
  tensors validate(tensors inputs, const micro_batch* data);

  /// Gradients of inputs (undefined tensors where an input is not floating; empty for block 0),
  /// given those of outputs (for the last block's loss: pass {}; its gradient is 1/N, so that the
  /// total is the gradient of the mean loss), and adds the parameters' gradients into the sums by
  /// `actions` (those of this micro-batch, in order).
  tensors backward(forward_record record, tensors output_gradients,
                   std::span<const core::reduction_action> actions);

  /// The sums: one flat float32 tensor a slot, all parameters in order, allocated on first use.
  at::Tensor& slot(std::uint32_t number);
  /// Frees all slots but `total`, which becomes the total gradient of this round.
  void set_total(at::Tensor total);
  /// Frees all slots and the total: the round is given up.
  void drop_sums() {
    sums_.clear();
    total_.reset();
  }
  const at::Tensor& total() const { return total_; }
  /// The part of the total that belongs to parameter `i`, as a flat view.
  at::Tensor total_of(std::size_t i) const;

  /// Sum of squares of the total gradient in float64, parameters in order, those with
  /// `counts[i] == false` (later copies of tied ones) left out. Fixed order of addition.
  double squared_norm(const std::vector<bool>& counts) const;

  /// Optimizer step number `step` with the total gradient times `clip_factor`. Elementwise. Uses
  /// the total up: it is scaled in place and then freed.
  void apply(step_id step, double learning_rate, double clip_factor);

  /// XXH3-64 over the parameters' bytes in order.
  std::uint64_t digest() const;

  /// Parameters and optimizer state, sharing memory with this block / copied. In the order of
  /// parameters(); each parameter is followed by its optimizer state.
  core::block_state share_state() const;
  core::block_state copy_state() const;
  /// Where tensor `part` of the state lives, to receive it straight into place.
  std::vector<core::state_tensor> state_tensors() const;
  /// Takes over values. `errc::foreign` when names or shapes are not this block's.
  result<void> load_state(const core::block_state& state);

  std::uint64_t parameter_bytes() const;
  std::uint64_t state_bytes() const;

private:
  /// A flat tensor and its parts by parameter, kept because making views costs more than adding.
  struct flat_sum {
    at::Tensor flat;
    tensors parts;
  };

  tensors run(tensors inputs, pass& p) const;
  tensors parts_of(const at::Tensor& flat) const;
  flat_sum& sum(std::uint32_t number);
  void add_up(const core::reduction_action& action, std::span<const at::Tensor> gradients);

  const core::job_options* job_;
  const block* description_;
  block_index index_;
  std::vector<parameter_spec> specs_;
  std::vector<std::int64_t> offsets_;  ///< of each parameter in a flat tensor, and the end
  tensors parameters_;                 ///< leaves that require gradients
  std::vector<tensors> moments_;       ///< of the optimizer: [moment][parameter]
  std::vector<flat_sum> sums_;
  at::Tensor total_;
};

/// Which parameters of each block count in the norm, and who is tied to whom.
struct tie_member {
  block_index block = 0;
  std::uint32_t parameter = 0;
  friend auto operator<=>(const tie_member&, const tie_member&) = default;
};
struct ties {
  std::vector<std::vector<tie_member>> groups;  ///< each in chain order, two members or more
  std::vector<std::vector<bool>> counts;        ///< [block][parameter]: false for later copies
};
ties find_ties(const chain& model);

}  // namespace shoal::engine
