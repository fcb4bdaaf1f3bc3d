#include "torch/runner/batches.hpp"

#include <exception>

#include "core/samples/samples.hpp"

namespace shoal::engine {

namespace {

core::sample_order order(const core::job_options& job, std::uint64_t count) {
  return {job.seed, count, job.training.micro_batches, job.training.micro_batch_size};
}

}  // namespace

micro_batch batches::training(step_id round, micro_batch_index g) const try {
  return data_->get(core::samples_of(order(*job_, data_->size()), round, g));
} catch (const std::exception& e) {
  throw batches_error("reading the samples of step " + std::to_string(round.value) +
                      ", micro-batch " + std::to_string(g) + ": " + e.what());
}

micro_batch batches::validation(micro_batch_index g) const try {
  return data_->get_validation(
    core::validation_samples_of(order(*job_, data_->validation_size()), g));
} catch (const std::exception& e) {
  throw batches_error("reading the samples of validation micro-batch " + std::to_string(g) + ": " +
                      e.what());
}

}  // namespace shoal::engine
