#include "torch/block_runtime.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/assert.hpp"
#include "torch/numbers.hpp"
#include "torch/optimizer.hpp"

namespace shoal::engine {

namespace {

constexpr std::size_t alignment = 64;  // of memory from at::empty

std::span<float> floats_of(const at::Tensor& t) {
  return {t.data_ptr<float>(), static_cast<std::size_t>(t.numel())};
}

/// Strides in row order, also where a dimension of size 1 would allow any: kernels look at them.
bool in_row_order(const at::Tensor& t) {
  std::int64_t expected = 1;
  for (auto d = t.dim() - 1; d >= 0; --d) {
    if (t.stride(d) != expected) return false;
    expected *= std::max<std::int64_t>(t.size(d), 1);
  }
  return true;
}

/// `t` as it would lie in memory had it come from another node. Nearly always `t` itself.
at::Tensor as_received(const at::Tensor& t) {
  auto address = reinterpret_cast<std::uintptr_t>(t.const_data_ptr());
  if (in_row_order(t) && address % alignment == 0) return t;
  return t.clone(at::MemoryFormat::Contiguous);
}

at::Tensor empty_floats(at::IntArrayRef shape) { return at::empty(shape, at::kFloat); }

/// Checks what the author of a block promised about its outputs.
void check_outputs(const tensors& outputs, const std::vector<tensor_spec>& promised) {
  TORCH_CHECK(outputs.size() == promised.size(), "forward returned ", outputs.size(),
              " tensors, outputs() promises ", promised.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    auto& t = outputs[i];
    TORCH_CHECK(t.defined(), "output ", i, " is undefined");
    TORCH_CHECK(t.scalar_type() == (promised[i].floating ? at::kFloat : at::kLong), "output ", i,
                " is of type ", t.scalar_type(), ", outputs() promises ",
                promised[i].floating ? "float32" : "int64");
    TORCH_CHECK(t.sizes() == at::IntArrayRef(promised[i].shape), "output ", i, " has shape ",
                t.sizes(), ", outputs() promises ", at::IntArrayRef(promised[i].shape));
  }
}

/// The outputs that gradients flow back from, with these gradients.
struct roots {
  tensors outputs;
  tensors gradients;
};

roots find_roots(const tensors& outputs, tensors gradients, std::uint32_t micro_batches) {
  roots found;
  if (gradients.empty()) {  // the loss, of which the mean over the micro-batches is wanted
    SHOAL_ASSERT(outputs.size() == 1 && outputs[0].numel() == 1);
    gradients = {at::scalar_tensor(1.0 / micro_batches, at::kFloat)};
  }
  SHOAL_ASSERT(gradients.size() == outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].requires_grad() && gradients[i].defined()) {
      found.outputs.push_back(outputs[i]);
      found.gradients.push_back(gradients[i]);
    }
  return found;
}

}  // namespace

block_runtime::block_runtime(const core::job_options& job, const block& description,
                             block_index index)
  : job_(&job), description_(&description), index_(index), specs_(description.parameters()) {
  offsets_.push_back(0);
  moments_.resize(moment_names(job.optimizer).size());
  for (auto& spec : specs_) {
    parameters_.push_back(empty_floats(spec.shape).set_requires_grad(true));
    for (auto& m : moments_) m.push_back(empty_floats(spec.shape));
    offsets_.push_back(offsets_.back() + parameters_.back().numel());
  }
}

void block_runtime::initialize() {
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    auto values = floats_of(parameters_[i]);
    switch (specs_[i].begin.what) {
      case initial::kind::zeros:
        std::ranges::fill(values, 0.0f);
        break;
      case initial::kind::ones:
        std::ranges::fill(values, 1.0f);
        break;
      case initial::kind::normal:
        rng::of(std::array{job_->seed}, specs_[i].name)
          .fill_normal(values, static_cast<float>(specs_[i].begin.deviation));
        break;
    }
    for (auto& m : moments_) std::ranges::fill(floats_of(m[i]), 0.0f);
  }
}

// -- forward and backward -------------------------------------------------------------------------

tensors block_runtime::run(tensors inputs, pass& p) const {
  if (inputs.empty() && p.data != nullptr) inputs = {p.data->inputs};
  try {
    auto outputs = description_->forward(inputs, parameters_, p);
    check_outputs(outputs, description_->outputs(job_->training.micro_batch_size));
    for (auto& t : outputs) t = as_received(t);
    return outputs;
  } catch (const c10::Error& e) {
    TORCH_CHECK(false, "block \"", description_->name(), "\": ", e.what_without_backtrace());
  } catch (const std::exception& e) {
    TORCH_CHECK(false, "block \"", description_->name(), "\": ", e.what());
  }
}

forward_record block_runtime::forward(tensors inputs, const micro_batch* data, step_id step,
                                      micro_batch_index g) {
  if (index_ == 0 && inputs.empty()) inputs = {data->inputs};
  for (auto& t : inputs) t = t.detach().set_requires_grad(index_ != 0 && t.is_floating_point());
  pass p{true, rng::of(std::array<std::uint64_t, 4>{job_->seed, step.value, g, index_}, "forward"),
         data};
  forward_record record;
  record.outputs = run(inputs, p);
  record.inputs = std::move(inputs);
  return record;
}

tensors block_runtime::validate(tensors inputs, const micro_batch* data) {
  at::NoGradGuard no_grad;
  pass p{false, rng::of(std::array{job_->seed}, "validate"), data};
  return run(std::move(inputs), p);
}

tensors block_runtime::backward(forward_record record, tensors output_gradients,
                                std::span<const core::reduction_action> actions) {
  auto [outputs, gradients] =
    find_roots(record.outputs, std::move(output_gradients), job_->training.micro_batches);
  tensors wanted;
  for (auto& t : record.inputs)
    if (t.requires_grad()) wanted.push_back(t);
  auto input_count = wanted.size();
  wanted.insert(wanted.end(), parameters_.begin(), parameters_.end());

  tensors found(wanted.size());
  if (!outputs.empty() && !wanted.empty())
    found = torch::autograd::grad(outputs, wanted, gradients, /*retain_graph=*/false,
                                  /*create_graph=*/false, /*allow_unused=*/true);

  at::NoGradGuard no_grad;
  auto of_parameters = std::span<const at::Tensor>(found).subspan(input_count);
  for (auto& action : actions) add_up(action, of_parameters);
  if (index_ == 0) return {};
  tensors input_gradients(record.inputs.size());
  for (std::size_t i = 0, next = 0; i < record.inputs.size(); ++i) {
    if (!record.inputs[i].requires_grad()) continue;
    auto& g = found[next++];
    input_gradients[i] =
      g.defined() ? as_received(g) : at::zeros(record.inputs[i].sizes(), at::kFloat);
  }
  return input_gradients;
}

// -- sums -----------------------------------------------------------------------------------------

tensors block_runtime::parts_of(const at::Tensor& flat) const {
  tensors parts;
  parts.reserve(specs_.size());
  for (std::size_t i = 0; i < specs_.size(); ++i)
    parts.push_back(
      flat.narrow(0, offsets_[i], offsets_[i + 1] - offsets_[i]).view(specs_[i].shape));
  return parts;
}

block_runtime::flat_sum& block_runtime::sum(std::uint32_t number) {
  if (number >= sums_.size()) sums_.resize(number + 1);
  auto& s = sums_[number];
  if (!s.flat.defined()) s.flat = empty_floats({offsets_.back()});
  // The owner of this class may have put another tensor into the slot.
  if (s.parts.empty() || (!specs_.empty() && s.parts[0].data_ptr() != s.flat.data_ptr()))
    s.parts = parts_of(s.flat);
  return s;
}

at::Tensor& block_runtime::slot(std::uint32_t number) { return sum(number).flat; }

void block_runtime::add_up(const core::reduction_action& action,
                           std::span<const at::Tensor> gradients) {
  using kind = core::reduction_action::kind;
  if (action.what == kind::merge) {
    auto& from = slot(action.other);  // may move `sums_`: before the other reference is taken
    at::Tensor right = from;
    slot(action.slot).add_(right);
    return;
  }
  auto& parts = sum(action.slot).parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto& g = gradients[i];
    if (action.what == kind::start)
      g.defined() ? parts[i].copy_(g) : parts[i].zero_();
    else  // an unused parameter's zero is added too: -0 + 0 is 0, whichever side it comes from
      g.defined() ? parts[i].add_(g) : parts[i].add_(0);
  }
}

void block_runtime::set_total(at::Tensor total) {
  SHOAL_ASSERT(total.scalar_type() == at::kFloat && total.is_contiguous() &&
               total.numel() == offsets_.back());
  total_ = total.view({-1});
  sums_.clear();
}

at::Tensor block_runtime::total_of(std::size_t i) const {
  return total_.narrow(0, offsets_[i], offsets_[i + 1] - offsets_[i]);
}

double block_runtime::squared_norm(const std::vector<bool>& counts) const {
  SHOAL_ASSERT(counts.size() == specs_.size());
  double sum = 0;
  for (std::size_t i = 0; i < specs_.size(); ++i)
    if (counts[i]) sum += sum_of_squares(floats_of(total_of(i)));
  return sum;
}

void block_runtime::apply(step_id step, double learning_rate, double clip_factor) {
  SHOAL_ASSERT(total_.defined());
  if (clip_factor != 1) total_.mul_(clip_factor);
  optimize(job_->optimizer, step, learning_rate, parameters_, parts_of(total_), moments_);
  total_.reset();
}

}  // namespace shoal::engine
