#include "core/job.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace shoal::core {

std::uint32_t reduction_leaf(const training_options& training) {
  if (training.reduction_leaf != 0) return training.reduction_leaf;
  return std::max<std::uint32_t>(1, training.micro_batches / 8);
}

namespace {

/// (1 + cos(pi t)) / 2 for t in [0, 1], as cos^2 of half the angle.
///
/// By its series instead of std::cos, which may round differently on machines with other vector
/// units, and the rate is part of the bits. Exactly 1 at t = 0; at t = 1 it is 4e-33.
double half_cosine(double t) {
  constexpr double half_pi = 1.5707963267948966;
  constexpr int terms = 14;  // the first one left out is below 1e-18
  double square = (half_pi * t) * (half_pi * t), sum = 1;
  for (int k = terms; k >= 1; --k) sum = 1 - sum * square / ((2 * k - 1) * (2 * k));
  return sum * sum;
}

}  // namespace

double learning_rate(const job_options& job, std::uint64_t step) {
  SHOAL_ASSERT(step >= 1);
  double lr = job.optimizer.lr;
  std::uint64_t warm_up = job.lr_scheduler.warmup_steps, last = job.training.steps;
  if (step < warm_up) return lr * static_cast<double>(step) / static_cast<double>(warm_up);
  if (job.lr_scheduler.decay == "constant" || step <= warm_up) return lr;
  double t =
    step >= last ? 1 : static_cast<double>(step - warm_up) / static_cast<double>(last - warm_up);
  double lowest = job.lr_scheduler.min_lr_factor;
  return lr * (lowest + (1 - lowest) * half_cosine(t));
}

double clip_factor(double max_norm, double norm) {
  return max_norm > 0 && norm > max_norm ? max_norm / norm : 1;
}

bool validates_after(const job_options& job, std::uint64_t step) {
  if (job.validation.every == 0) return false;
  return (step > 0 && step % job.validation.every == 0) || step == job.training.steps;
}

bool checkpoints_after(const job_options& job, std::uint64_t step) {
  bool due = job.checkpoint.every > 0 && step > 0 && step % job.checkpoint.every == 0;
  return due || step == job.training.steps;
}

}  // namespace shoal::core
