#pragma once
// The reference: what shoal promises to compute, as simple as can be read.
//
// One process, one replica, one thread: no actors, no transport, no schedule. Every other way to
// run a job must end with the same bits. It is also the baseline of the benchmarks.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "core/job.hpp"
#include "core/reduction/tree.hpp"
#include "core/samples/samples.hpp"
#include "core/step/decide.hpp"
#include "shoal/data.hpp"
#include "shoal/model.hpp"
#include "shoal/trainer.hpp"
#include "torch/block_runtime.hpp"

namespace shoal::engine {

/// Trains a whole model in this thread. Not thread-safe.
class reference_trainer {
public:
  /// Takes a job that `check_job` found sound. All three must outlive this. Weights are initial.
  reference_trainer(const core::job_options& job, const chain& model, const dataset& data);

  /// Round `step` (1-based; each once, in order): validates the weights of step-1 if that is due,
  /// trains, decides, applies. Leaves `digest_before` to the caller. `errc::not_finite` when a
  /// value is not finite and the job says stop: weights are as before. `errc::data` when a sample
  /// cannot be read.
  result<step_info> round(step_id step);

  /// Mean loss of the validation micro-batches with the present weights. `errc::data`.
  result<double> validate() const;

  /// The digest of each block's parameters, in chain order.
  std::vector<std::uint64_t> digests() const;

  const std::vector<std::unique_ptr<block_runtime>>& blocks() const { return blocks_; }

private:
  core::sample_order order(std::uint64_t count) const;
  double train(const micro_batch& batch, core::round_facts& facts, micro_batch_index g);
  void complete_sums();
  error not_finite(step_id step, const std::optional<core::not_finite>& where) const;

  const core::job_options* job_;
  const dataset* data_;
  core::accumulation sums_;
  ties ties_;
  std::vector<std::unique_ptr<block_runtime>> blocks_;
};

/// What is left of a run.
struct reference_outcome {
  std::vector<std::uint64_t> block_digests;  ///< of the weights after the last step
  std::uint64_t digest = 0;                  ///< core::model_digest of these
  std::optional<double> validation_loss;     ///< of these weights, when due
  double loss_first = 0;                     ///< of the first and the last step
  double loss_last = 0;
};

/// Called after each round with what became of it, and the digest of each block before it.
using reference_callback =
  std::function<void(const step_info&, const std::vector<std::uint64_t>& digests_before)>;

/// All rounds of a job, and the closing one. Errors as reference_trainer::round; `errc::no_memory`;
/// `errc::internal` with the block's name when a model's forward pass throws.
result<reference_outcome> run_reference(const core::job_options& job, const chain& model,
                                        const dataset& data,
                                        const reference_callback& on_step = {});

}  // namespace shoal::engine
