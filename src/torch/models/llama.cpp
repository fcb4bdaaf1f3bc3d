#include "torch/models/llama.hpp"

#include <utility>

#include <ATen/ATen.h>

#include "torch/models/attention.hpp"

namespace shoal::engine {

namespace {

constexpr double epsilon = 1e-5;  // of norms
constexpr double rotary_base = 10000;

initial normal(double deviation = initial_deviation) { return {initial::kind::normal, deviation}; }
constexpr initial ones{initial::kind::ones, 0};

/// 8/3 of `dim`, so that three matrices cost what GPT-2's two do, rounded up to 32.
std::int64_t default_hidden(std::int64_t dim) { return (8 * dim + 95) / 96 * 32; }

struct sizes {
  explicit sizes(const core::model_options& o)
    : layers(o.layers),
      dim(o.dim),
      heads(o.heads),
      kv_heads(o.kv_heads == 0 ? o.heads : o.kv_heads),
      head_dim(dim / heads),
      hidden(o.hidden == 0 ? default_hidden(dim) : o.hidden),
      vocabulary(o.vocab_size),
      length(o.seq_len),
      dropout(o.dropout) {}
  std::uint32_t layers;
  std::int64_t dim, heads, kv_heads, head_dim, hidden, vocabulary, length;
  double dropout;

  std::vector<tensor_spec> boundary(std::int64_t size) const {
    return {{{size, length, dim}, true}};
  }
  double tokens(std::int64_t size) const { return static_cast<double>(size * length); }
};

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight) {
  return at::rms_norm(x, weight.sizes(), weight, epsilon);
}

/// Turns pairs (i, i + d/2) of each head by position / base^(2i/d). x is [m, t, heads, d].
struct rotation {
  rotation(std::int64_t t, std::int64_t head_dim) {
    auto frequencies =
      at::pow(rotary_base, at::arange(0, head_dim, 2, at::kFloat) / static_cast<double>(head_dim))
        .reciprocal();
    auto angles = at::outer(at::arange(t, at::kFloat), frequencies).unsqueeze(1);
    cosine = at::cos(angles);
    sine = at::sin(angles);
  }
  at::Tensor operator()(const at::Tensor& x) const {
    auto halves = x.chunk(2, -1);
    return at::cat({halves[0] * cosine - halves[1] * sine, halves[1] * cosine + halves[0] * sine},
                   -1);
  }
  at::Tensor cosine, sine;  // [t, 1, d/2]
};

class embedding final : public block {
public:
  explicit embedding(sizes s) : s_(s) {}
  std::string name() const override { return "embedding"; }
  std::vector<parameter_spec> parameters() const override {
    return {{"model.embed_tokens.weight", {s_.vocabulary, s_.dim}, normal()}};
  }
  std::vector<tensor_spec> outputs(std::int64_t size) const override { return s_.boundary(size); }
  tensors forward(const tensors& inputs, const tensors& w, pass& p) const override {
    return {dropout(at::embedding(w[0], inputs[0]), s_.dropout, p)};
  }
  double work(std::int64_t size) const override {
    return s_.tokens(size) * static_cast<double>(s_.dim);
  }

private:
  sizes s_;
};

class layer final : public block {
public:
  layer(sizes s, std::uint32_t number) : s_(s), name_("layers." + std::to_string(number)) {}
  std::string name() const override { return name_; }
  std::vector<parameter_spec> parameters() const override {
    auto d = s_.dim, kv = s_.kv_heads * s_.head_dim, h = s_.hidden;
    auto in = "model." + name_;
    auto residual = normal(residual_deviation(s_.layers));
    return {{in + ".input_layernorm.weight", {d}, ones},
            {in + ".self_attn.q_proj.weight", {d, d}, normal()},
            {in + ".self_attn.k_proj.weight", {kv, d}, normal()},
            {in + ".self_attn.v_proj.weight", {kv, d}, normal()},
            {in + ".self_attn.o_proj.weight", {d, d}, residual},
            {in + ".post_attention_layernorm.weight", {d}, ones},
            {in + ".mlp.gate_proj.weight", {h, d}, normal()},
            {in + ".mlp.up_proj.weight", {h, d}, normal()},
            {in + ".mlp.down_proj.weight", {d, h}, residual}};
  }
  std::vector<tensor_spec> outputs(std::int64_t size) const override { return s_.boundary(size); }
  tensors forward(const tensors& inputs, const tensors& w, pass& p) const override {
    auto x = inputs[0];
    x = x + dropout(attention(rms_norm(x, w[0]), w, p), s_.dropout, p);
    auto y = rms_norm(x, w[5]);
    y = at::silu(at::linear(y, w[6])) * at::linear(y, w[7]);
    return {x + dropout(at::linear(y, w[8]), s_.dropout, p)};
  }
  double work(std::int64_t size) const override {
    auto d = static_cast<double>(s_.dim), kv = static_cast<double>(s_.kv_heads * s_.head_dim);
    return s_.tokens(size) * (2 * d * d + 2 * d * kv + 3 * d * static_cast<double>(s_.hidden) +
                              d * static_cast<double>(s_.length));
  }

private:
  at::Tensor attention(const at::Tensor& x, const tensors& w, pass& p) const {
    auto m = x.size(0), t = x.size(1), d = s_.head_dim;
    rotation turn(t, d);
    auto query = turn(at::linear(x, w[1]).view({m, t, s_.heads, d})).transpose(1, 2);
    auto key = turn(at::linear(x, w[2]).view({m, t, s_.kv_heads, d})).transpose(1, 2);
    auto value = at::linear(x, w[3]).view({m, t, s_.kv_heads, d}).transpose(1, 2);
    auto y = causal_attention(query, for_each_query(key), for_each_query(value), s_.dropout, p);
    return at::linear(y.transpose(1, 2).reshape({m, t, s_.dim}), w[4]);
  }

  /// Head h of the result is head h / (heads / kv_heads) of `t` [m, kv_heads, t, d].
  at::Tensor for_each_query(const at::Tensor& t) const {
    auto times = s_.heads / s_.kv_heads;
    if (times == 1) return t;
    return t.unsqueeze(2)
      .expand({t.size(0), s_.kv_heads, times, t.size(2), t.size(3)})
      .reshape({t.size(0), s_.heads, t.size(2), t.size(3)});
  }

  sizes s_;
  std::string name_;
};

class head final : public block {
public:
  explicit head(sizes s) : s_(s) {}
  std::string name() const override { return "head"; }
  std::vector<parameter_spec> parameters() const override {
    return {{"model.norm.weight", {s_.dim}, ones},
            {"lm_head.weight", {s_.vocabulary, s_.dim}, normal()}};
  }
  std::vector<tensor_spec> outputs(std::int64_t) const override { return {{{}, true}}; }
  tensors forward(const tensors& inputs, const tensors& w, pass& p) const override {
    return {next_token_loss(rms_norm(inputs[0], w[0]), w[1], p.data->targets)};
  }
  double work(std::int64_t size) const override {
    return s_.tokens(size) * static_cast<double>(s_.dim) * static_cast<double>(s_.vocabulary);
  }

private:
  sizes s_;
};

result<void> check(const core::model_options& o) {
  TRY_VOID(check_language_model(o));
  if (o.kv_heads != 0 && o.heads % o.kv_heads != 0)
    return model_error("kv_heads", std::to_string(o.kv_heads),
                       "does not divide model.heads = " + std::to_string(o.heads));
  if (o.dim / o.heads % 2 != 0)
    return model_error("dim", std::to_string(o.dim),
                       "rotary positions need heads of even size, and dim / heads is " +
                         std::to_string(o.dim / o.heads));
  return {};
}

}  // namespace

result<chain> make_llama(const core::model_options& options) {
  TRY_VOID(check(options));
  sizes s(options);
  chain model;
  model.push_back(std::make_unique<embedding>(s));
  for (std::uint32_t n = 0; n < options.layers; ++n) model.push_back(std::make_unique<layer>(s, n));
  model.push_back(std::make_unique<head>(s));
  return model;
}

}  // namespace shoal::engine
