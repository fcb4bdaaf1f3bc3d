// The second half of the registry: does the job fit its model and data, and what will it cost.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/layout.hpp"
#include "torch/optimizer.hpp"
#include "torch/registry.hpp"

namespace shoal::engine {

namespace {

error wrong(const std::string& key, const std::string& value, const std::string& what) {
  return {errc::config, key + " = " + value + ": " + what};
}

result<void> check_training(const core::training_options& t) {
  if (t.micro_batches == 0 || t.micro_batches > core::micro_batch_count_max)
    return wrong("training.micro_batches", std::to_string(t.micro_batches),
                 "must be from 1 to " + std::to_string(core::micro_batch_count_max));
  if (t.micro_batch_size == 0) return wrong("training.micro_batch_size", "0", "must be at least 1");
  if (t.threads == 0) return wrong("training.threads", "0", "must be at least 1");
  return {};
}

result<void> check_optimizer(const core::optimizer_options& o) {
  if (o.name != "adamw" && o.name != "sgd")
    return wrong("optimizer.name", "\"" + o.name + "\"", "there are \"adamw\" and \"sgd\"");
  auto fraction = [](double x) { return x >= 0 && x < 1; };
  if (!fraction(o.beta1))
    return wrong("optimizer.beta1", std::to_string(o.beta1), "must be in [0, 1)");
  if (!fraction(o.beta2))
    return wrong("optimizer.beta2", std::to_string(o.beta2), "must be in [0, 1)");
  if (!(o.momentum >= 0))
    return wrong("optimizer.momentum", std::to_string(o.momentum), "must be at least 0");
  return {};
}

result<void> check_samples(const core::job_options& job, const dataset& data) {
  auto needed = std::uint64_t{job.training.micro_batches} * job.training.micro_batch_size;
  if (data.size() < needed)
    return error{errc::data, "data \"" + job.data.path + "\" has " + std::to_string(data.size()) +
                               " samples, and one step needs training.micro_batches (" +
                               std::to_string(job.training.micro_batches) +
                               ") times training.micro_batch_size (" +
                               std::to_string(job.training.micro_batch_size) + ") = " +
                               std::to_string(needed) + "; use more data or a smaller batch"};
  if (job.validation.every == 0) return {};
  if (job.validation.micro_batches == 0 ||
      job.validation.micro_batches > core::micro_batch_count_max)
    return wrong("validation.micro_batches", std::to_string(job.validation.micro_batches),
                 "must be from 1 to " + std::to_string(core::micro_batch_count_max));
  if (data.validation_size() == 0)
    return error{errc::data,
                 "data \"" + job.data.path +
                   "\" has no whole sample to validate with, and "
                   "validation.every asks for it; raise data.validation_fraction, or leave "
                   "validation out"};
  return {};
}

std::uint64_t bytes_of(const std::vector<tensor_spec>& specs) {
  std::uint64_t bytes = 0;
  for (auto& s : specs) {
    std::uint64_t count = s.floating ? sizeof(float) : sizeof(std::int64_t);
    for (auto d : s.shape) count *= static_cast<std::uint64_t>(d);
    bytes += count;
  }
  return bytes;
}

/// What a block keeps for backward. A product of `inner`-wide rows with a matrix costs `inner`
/// multiplications for each number of its result, so work / inner is about what all results hold;
/// half as much again for norms and activations.
double stash_floats(double work, const std::vector<tensor_spec>& inputs,
                    const std::vector<tensor_spec>& outputs) {
  auto& shape = inputs.empty() ? outputs[0].shape : inputs[0].shape;
  double inner = shape.empty() ? 1 : static_cast<double>(std::max<std::int64_t>(shape.back(), 1));
  return 1.5 * work / inner;
}

core::nanoseconds time_of(double flops) {
  constexpr double flops_per_ns = 20;
  return core::nanoseconds(static_cast<std::int64_t>(std::ceil(flops / flops_per_ns)));
}

}  // namespace

result<void> check_job(const core::job_options& job, const chain& model, const dataset& data) {
  TRY_VOID(check_training(job.training));
  TRY_VOID(check_optimizer(job.optimizer));
  if (job.parallelism.depth > model.size())
    return wrong(
      "parallelism.depth", std::to_string(job.parallelism.depth),
      "the model has " + std::to_string(model.size()) + " blocks, and a stage needs one");
  return check_samples(job, data);
}

std::vector<core::block_cost> first_costs(const chain& model, const core::job_options& job) {
  auto size = static_cast<std::int64_t>(job.training.micro_batch_size);
  auto moments = moment_names(job.optimizer).size();
  std::vector<core::block_cost> costs;
  std::vector<tensor_spec> inputs;
  for (auto& b : model) {
    auto outputs = b->outputs(size);
    auto work = b->work(size);
    core::block_cost cost;
    cost.name = b->name();
    cost.forward = time_of(2 * work);
    cost.backward = time_of(4 * work);  // gradients of inputs and of parameters
    for (auto& p : b->parameters()) cost.parameter_bytes += bytes_of({{p.shape, true}});
    cost.state_bytes = cost.parameter_bytes * moments;
    cost.stash_bytes =
      static_cast<std::uint64_t>(4 * stash_floats(work, inputs, outputs)) + bytes_of(outputs);
    cost.boundary_bytes = bytes_of(inputs);
    costs.push_back(std::move(cost));
    inputs = std::move(outputs);
  }
  return costs;
}

core::plan_profile first_profile(const chain& model, const core::job_options& job) {
  core::plan_profile profile{.blocks = first_costs(model, job)};
  if (job.emulate.rate.bytes_per_s > 0) profile.link_bytes_per_s = job.emulate.rate.bytes_per_s;
  profile.link_latency += job.emulate.delay;
  return profile;
}

}  // namespace shoal::engine
