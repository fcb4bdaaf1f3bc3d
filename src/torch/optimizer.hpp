#pragma once
// The optimizer step: ATen's fused kernels, one pass over parameter, gradient and moments.
//
// Elementwise on whole parameters, so no bit depends on who holds which block. Weight decay acts on
// parameters of two or more dimensions alone: on matrices, not on biases and norms' scales.

#include <string_view>
#include <vector>

#include "base/strong_id.hpp"
#include "core/job.hpp"
#include "shoal/model.hpp"

namespace shoal::engine {

/// What the optimizer remembers of each parameter, by the suffix of its name: {"exp_avg",
/// "exp_avg_sq"} for adamw, {"momentum"} for sgd with momentum, none for plain sgd. All begin at 0.
std::vector<std::string_view> moment_names(const core::optimizer_options& options);

/// One step, number `step` from 1 on (adamw's bias correction takes it, so a skipped step counts).
/// `gradients[i]` has the shape of `parameters[i]`, and so have `moments[k][i]`, in the order of
/// moment_names. `learning_rate` replaces options.lr.
void optimize(const core::optimizer_options& options, step_id step, double learning_rate,
              const tensors& parameters, const tensors& gradients,
              const std::vector<tensors>& moments);

}  // namespace shoal::engine
