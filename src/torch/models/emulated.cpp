#include "torch/models/emulated.hpp"

#include <chrono>
#include <thread>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/nearest.hpp"
#include "base/units.hpp"

namespace shoal::engine {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::chrono::nanoseconds wait_max = std::chrono::minutes(1);

struct sizes {
  std::int64_t dim = 0, sequence = 0, vocabulary = 0;
  std::chrono::nanoseconds forward{0}, backward{0};
};

/// Gives back what it gets, after a while in each direction.
struct wait : torch::autograd::Function<wait> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, std::int64_t forward_ns,
                            std::int64_t backward_ns) {
    context->saved_data["ns"] = backward_ns;
    std::this_thread::sleep_for(std::chrono::nanoseconds(forward_ns));
    return x.clone();
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(context->saved_data["ns"].toInt()));
    return {gradients[0], at::Tensor(), at::Tensor()};
  }
};

class embedding final : public block {
public:
  explicit embedding(const sizes& s) : s_(s) {}
  std::string name() const override { return "embedding"; }
  std::vector<parameter_spec> parameters() const override {
    return {{"embedding.weight", {s_.vocabulary, s_.dim}, {}}};
  }
  std::vector<tensor_spec> outputs(std::int64_t size) const override {
    return {{{size, s_.sequence, s_.dim}, true}};
  }
  tensors forward(const tensors& inputs, const tensors& parameters, pass&) const override {
    return {at::embedding(parameters[0], inputs[0])};
  }

private:
  sizes s_;
};

class layer final : public block {
public:
  layer(const sizes& s, std::uint32_t number) : s_(s), name_("layer." + std::to_string(number)) {}
  std::string name() const override { return name_; }
  std::vector<parameter_spec> parameters() const override {
    return {{name_ + ".weight", {s_.dim}, {initial::kind::ones}}};
  }
  std::vector<tensor_spec> outputs(std::int64_t size) const override {
    return {{{size, s_.sequence, s_.dim}, true}};
  }
  tensors forward(const tensors& inputs, const tensors& parameters, pass&) const override {
    return {wait::apply(inputs[0] * parameters[0], s_.forward.count(), s_.backward.count())};
  }
  /// What takes `forward` where work is turned into time.
  double work(std::int64_t) const override {
    constexpr double products_per_ns = 10;
    return static_cast<double>(s_.forward.count()) * products_per_ns;
  }

private:
  sizes s_;
  std::string name_;
};

class head final : public block {
public:
  explicit head(const sizes& s) : s_(s) {}
  std::string name() const override { return "head"; }
  std::vector<parameter_spec> parameters() const override {
    return {{"head.weight", {s_.dim}, {initial::kind::ones}}};
  }
  std::vector<tensor_spec> outputs(std::int64_t) const override { return {{{}, true}}; }
  tensors forward(const tensors& inputs, const tensors& parameters, pass&) const override {
    return {(inputs[0] * parameters[0]).square().mean()};
  }

private:
  sizes s_;
};

result<std::chrono::nanoseconds> wait_of(const core::model_options& o, const std::string& key) {
  auto found = o.custom.find(key);
  auto place = "model.custom." + key;
  if (found == o.custom.end())
    return {errc::config, place + " is missing: how long a layer waits, as in \"10ms\""};
  auto time = parse_duration(found->second);
  if (!time) return in(place, time.error());
  if (time->count() < 0 || *time > wait_max)
    return {errc::config, place + " = \"" + found->second + "\" must be from 0s to 1min"};
  return time;
}

}  // namespace

result<chain> make_emulated(const core::model_options& o) {
  const std::vector<std::string> keys{"forward", "backward"};
  for (auto& [key, value] : o.custom)
    if (std::ranges::find(keys, key) == keys.end())
      return {errc::config, "model.custom." + key + " is not known; the nearest is \"" +
                              nearest_name(key, keys) + "\""};
  if (o.layers == 0 || o.dim == 0 || o.seq_len == 0 || o.vocab_size == 0)
    return {errc::config, "model.layers, dim, seq_len and vocab_size must be at least 1"};
  sizes s{.dim = o.dim, .sequence = o.seq_len, .vocabulary = o.vocab_size};
  TRY(s.forward, wait_of(o, "forward"));
  TRY(s.backward, wait_of(o, "backward"));
  chain model;
  model.push_back(std::make_unique<embedding>(s));
  for (std::uint32_t i = 0; i < o.layers; ++i) model.push_back(std::make_unique<layer>(s, i));
  model.push_back(std::make_unique<head>(s));
  return model;
}

}  // namespace shoal::engine
