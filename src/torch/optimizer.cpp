#include "torch/optimizer.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/assert.hpp"

namespace shoal::engine {

namespace {

bool is_adamw(const core::optimizer_options& options) { return options.name == "adamw"; }

/// The parameters that share a weight decay, with all that belongs to them.
struct group {
  tensors parameters;
  tensors gradients;
  std::vector<tensors> moments;
};

void optimize(const core::optimizer_options& options, const group& g, step_id step,
              double learning_rate, double weight_decay) {
  if (g.parameters.empty()) return;
  if (is_adamw(options)) {
    tensors steps(g.parameters.size(),
                  at::scalar_tensor(static_cast<double>(step.value), at::kFloat));
    at::_fused_adamw_(g.parameters, g.gradients, g.moments[0], g.moments[1], {}, steps,
                      learning_rate, options.beta1, options.beta2, weight_decay, options.eps,
                      /*amsgrad=*/false, /*maximize=*/false);
    return;
  }
  // Momentum buffers begin at zero, so the first step needs no case of its own.
  at::_fused_sgd_(g.parameters, g.gradients, g.moments.empty() ? tensors{} : g.moments[0],
                  weight_decay, options.momentum, learning_rate, /*dampening=*/0,
                  /*nesterov=*/false, /*maximize=*/false, /*is_first_step=*/false);
}

}  // namespace

std::vector<std::string_view> moment_names(const core::optimizer_options& options) {
  if (is_adamw(options)) return {"exp_avg", "exp_avg_sq"};
  if (options.momentum != 0) return {"momentum"};
  return {};
}

void optimize(const core::optimizer_options& options, step_id step, double learning_rate,
              const tensors& parameters, const tensors& gradients,
              const std::vector<tensors>& moments) {
  SHOAL_ASSERT(parameters.size() == gradients.size());
  at::NoGradGuard no_grad;
  group decayed, plain;
  decayed.moments.resize(moments.size());
  plain.moments.resize(moments.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    auto& g = parameters[i].dim() >= 2 ? decayed : plain;
    g.parameters.push_back(parameters[i]);
    g.gradients.push_back(gradients[i]);
    for (std::size_t k = 0; k < moments.size(); ++k) g.moments[k].push_back(moments[k][i]);
  }
  optimize(options, decayed, step, learning_rate, options.weight_decay);
  optimize(options, plain, step, learning_rate, 0);
}

}  // namespace shoal::engine
