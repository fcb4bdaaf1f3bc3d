#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "torch/optimizer.hpp"
#include "unit/torch/helpers.hpp"

using namespace shoal;
using namespace shoal::engine;

namespace {

/// Two parameters, one of them without weight decay, trained by ours and by torch's for ten steps.
template <class Make>
void compare_with(const core::optimizer_options& options, Make make) {
  at::manual_seed(1);
  tensors ours{at::randn({5, 7}), at::randn({9})}, theirs;
  for (auto& t : ours) theirs.push_back(t.clone().set_requires_grad(true));
  std::vector<tensors> moments(moment_names(options).size());
  for (auto& m : moments)
    for (auto& t : ours) m.push_back(at::zeros_like(t));
  auto decayed = make(theirs[0], options.weight_decay), plain = make(theirs[1], 0.0);
  for (std::uint64_t step = 1; step <= 10; ++step) {
    double rate = options.lr / static_cast<double>(step);
    tensors gradients{at::randn({5, 7}), at::randn({9})};
    for (std::size_t i = 0; i < 2; ++i) theirs[i].mutable_grad() = gradients[i].clone();
    for (auto* o : {decayed.get(), plain.get()}) {
      o->param_groups()[0].options().set_lr(rate);
      o->step();
    }
    optimize(options, step_id{step}, rate, ours, gradients, moments);
    for (std::size_t i = 0; i < 2; ++i)
      CHECK(at::allclose(ours[i], theirs[i].detach(), 1e-5, 1e-7));
  }
}

}  // namespace

TEST_CASE("adamw does what torch's does, without decay on vectors", "[torch]") {
  core::optimizer_options options;
  options.lr = 0.05;
  compare_with(options, [&](const at::Tensor& t, double decay) {
    return std::make_unique<torch::optim::AdamW>(std::vector{t},
                                                 torch::optim::AdamWOptions(options.lr)
                                                   .betas({options.beta1, options.beta2})
                                                   .eps(options.eps)
                                                   .weight_decay(decay));
  });
}

TEST_CASE("sgd does what torch's does", "[torch]") {
  core::optimizer_options options;
  options.name = "sgd";
  options.lr = 0.05;
  options.momentum = GENERATE(0.0, 0.9);
  compare_with(options, [&](const at::Tensor& t, double decay) {
    return std::make_unique<torch::optim::SGD>(
      std::vector{t},
      torch::optim::SGDOptions(options.lr).momentum(options.momentum).weight_decay(decay));
  });
}

TEST_CASE("an optimizer step does not depend on where gradients lie in memory", "[torch]") {
  core::optimizer_options options;
  at::manual_seed(2);
  auto start = at::randn({1003}), gradient = at::randn({1003});
  at::Tensor first;
  for (std::int64_t shift : {0, 1, 3, 7}) {
    auto shifted = at::empty({1003 + shift}).narrow(0, shift, 1003);
    shifted.copy_(gradient);
    auto p = start.clone();
    optimize(options, step_id{3}, 0.01, {p}, {shifted}, {{at::zeros({1003})}, {at::zeros({1003})}});
    if (!first.defined()) first = p;
    CHECK(test::same_bits(p, first));
  }
}
