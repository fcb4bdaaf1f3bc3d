#include "torch/models/gpt2.hpp"

#include <utility>

#include <ATen/ATen.h>

#include "torch/models/attention.hpp"

namespace shoal::engine {

namespace {

constexpr double epsilon = 1e-5;  // of layer norms

using kind = initial::kind;

initial normal(double deviation = initial_deviation) { return {kind::normal, deviation}; }
constexpr initial zeros{kind::zeros, 0};
constexpr initial ones{kind::ones, 0};

struct sizes {
  explicit sizes(const core::model_options& o)
    : layers(o.layers),
      dim(o.dim),
      heads(o.heads),
      hidden(o.hidden == 0 ? 4 * dim : o.hidden),
      vocabulary(o.vocab_size),
      length(o.seq_len),
      dropout(o.dropout) {}
  std::uint32_t layers;
  std::int64_t dim, heads, hidden, vocabulary, length;
  double dropout;

  parameter_spec word_embedding() const { return {"wte.weight", {vocabulary, dim}, normal()}; }
  std::vector<tensor_spec> boundary(std::int64_t size) const {
    return {{{size, length, dim}, true}};
  }
  double tokens(std::int64_t size) const { return static_cast<double>(size * length); }
};

class embedding final : public block {
public:
  explicit embedding(sizes s) : s_(s) {}
  std::string name() const override { return "embedding"; }
  std::vector<parameter_spec> parameters() const override {
    return {s_.word_embedding(), {"wpe.weight", {s_.length, s_.dim}, normal()}};
  }
  std::vector<tensor_spec> outputs(std::int64_t size) const override { return s_.boundary(size); }
  tensors forward(const tensors& inputs, const tensors& w, pass& p) const override {
    auto words = at::embedding(w[0], inputs[0]);
    return {dropout(words + w[1].narrow(0, 0, inputs[0].size(1)), s_.dropout, p)};
  }
  double work(std::int64_t size) const override {
    return s_.tokens(size) * static_cast<double>(s_.dim);
  }

private:
  sizes s_;
};

class layer final : public block {
public:
  layer(sizes s, std::uint32_t number) : s_(s), name_("h." + std::to_string(number)) {}
  std::string name() const override { return name_; }
  std::vector<parameter_spec> parameters() const override {
    auto d = s_.dim, h = s_.hidden;
    auto residual = normal(residual_deviation(s_.layers));
    return {{name_ + ".ln_1.weight", {d}, ones},
            {name_ + ".ln_1.bias", {d}, zeros},
            {name_ + ".attn.c_attn.weight", {d, 3 * d}, normal()},
            {name_ + ".attn.c_attn.bias", {3 * d}, zeros},
            {name_ + ".attn.c_proj.weight", {d, d}, residual},
            {name_ + ".attn.c_proj.bias", {d}, zeros},
            {name_ + ".ln_2.weight", {d}, ones},
            {name_ + ".ln_2.bias", {d}, zeros},
            {name_ + ".mlp.c_fc.weight", {d, h}, normal()},
            {name_ + ".mlp.c_fc.bias", {h}, zeros},
            {name_ + ".mlp.c_proj.weight", {h, d}, residual},
            {name_ + ".mlp.c_proj.bias", {d}, zeros}};
  }
  std::vector<tensor_spec> outputs(std::int64_t size) const override { return s_.boundary(size); }
  tensors forward(const tensors& inputs, const tensors& w, pass& p) const override {
    auto x = inputs[0];
    x =
      x + dropout(attention(at::layer_norm(x, {s_.dim}, w[0], w[1], epsilon), w, p), s_.dropout, p);
    auto y = conv1d(at::layer_norm(x, {s_.dim}, w[6], w[7], epsilon), w[8], w[9]);
    y = conv1d(at::gelu(y, "tanh"), w[10], w[11]);
    return {x + dropout(y, s_.dropout, p)};
  }
  double work(std::int64_t size) const override {
    auto d = static_cast<double>(s_.dim);
    return s_.tokens(size) * (4 * d * d + 2 * d * static_cast<double>(s_.hidden) +
                              d * static_cast<double>(s_.length));
  }

private:
  at::Tensor attention(const at::Tensor& x, const tensors& w, pass& p) const {
    auto m = x.size(0), t = x.size(1);
    auto parts = conv1d(x, w[2], w[3]).chunk(3, -1);  // its backward pass writes one tensor, once
    for (auto& part : parts) part = part.view({m, t, s_.heads, s_.dim / s_.heads}).transpose(1, 2);
    auto y = causal_attention(parts[0], parts[1], parts[2], s_.dropout, p);
    return conv1d(y.transpose(1, 2).reshape({m, t, s_.dim}), w[4], w[5]);
  }

  sizes s_;
  std::string name_;
};

class head final : public block {
public:
  explicit head(sizes s) : s_(s) {}
  std::string name() const override { return "head"; }
  std::vector<parameter_spec> parameters() const override {
    return {{"ln_f.weight", {s_.dim}, ones}, {"ln_f.bias", {s_.dim}, zeros}, s_.word_embedding()};
  }
  std::vector<tensor_spec> outputs(std::int64_t) const override { return {{{}, true}}; }
  tensors forward(const tensors& inputs, const tensors& w, pass& p) const override {
    auto x = at::layer_norm(inputs[0], {s_.dim}, w[0], w[1], epsilon);
    return {next_token_loss(x, w[2], p.data->targets)};
  }
  double work(std::int64_t size) const override {
    return s_.tokens(size) * static_cast<double>(s_.dim) * static_cast<double>(s_.vocabulary);
  }

private:
  sizes s_;
};

}  // namespace

result<chain> make_gpt2(const core::model_options& options) {
  TRY_VOID(check_language_model(options));
  if (options.kv_heads != 0 && options.kv_heads != options.heads)
    return model_error(
      "kv_heads", std::to_string(options.kv_heads),
      "gpt2 has as many as heads; leave the key out, or use model.kind = \"llama\"");
  sizes s(options);
  chain model;
  model.push_back(std::make_unique<embedding>(s));
  for (std::uint32_t n = 0; n < options.layers; ++n) model.push_back(std::make_unique<layer>(s, n));
  model.push_back(std::make_unique<head>(s));
  return model;
}

}  // namespace shoal::engine
