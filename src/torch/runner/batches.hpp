#pragma once
// The data of a micro-batch, by its number.

#include <stdexcept>
#include <string>

#include "core/job.hpp"
#include "core/schedule/schedule.hpp"
#include "shoal/data.hpp"

namespace shoal::engine {

/// A sample could not be read.
struct batches_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads samples by the job's order. `job` and `data` must outlive this.
class batches {
public:
  batches(const core::job_options& job, const dataset& data) : job_(&job), data_(&data) {}
  /// Of training micro-batch g of the round. Throws batches_error.
  micro_batch training(step_id round, micro_batch_index g) const;
  /// Of validation micro-batch g. Throws batches_error.
  micro_batch validation(micro_batch_index g) const;

private:
  const core::job_options* job_;
  const dataset* data_;
};

}  // namespace shoal::engine
