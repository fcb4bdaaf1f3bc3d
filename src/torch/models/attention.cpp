#include "torch/models/attention.hpp"

#include <cmath>
#include <limits>

#include <ATen/ATen.h>

#include "core/layout.hpp"

namespace shoal::engine {

namespace {

at::Tensor keep_mask(at::IntArrayRef shape, double rate, pass& p) {
  auto mask = at::empty(shape, at::kFloat);
  p.random.fill_keep_mask({mask.data_ptr<float>(), static_cast<std::size_t>(mask.numel())},
                          static_cast<float>(1 - rate));
  return mask;
}

}  // namespace

at::Tensor dropout(const at::Tensor& t, double rate, pass& p) {
  if (rate == 0 || !p.training) return t;
  return t * keep_mask(t.sizes(), rate, p);
}

at::Tensor causal_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            double rate, pass& p) {
  if (rate == 0 || !p.training)
    return at::scaled_dot_product_attention(query, key, value, {}, 0.0, /*is_causal=*/true);
  // ATen's kernel would draw its mask from torch's running generator.
  auto t = query.size(2);
  auto future = at::ones({t, t}, at::kBool).triu_(1);
  auto scores =
    at::matmul(query, key.transpose(2, 3)) / std::sqrt(static_cast<double>(query.size(3)));
  scores = scores.masked_fill(future, -std::numeric_limits<float>::infinity());
  return at::matmul(dropout(at::softmax(scores, -1), rate, p), value);
}

at::Tensor next_token_loss(const at::Tensor& x, const at::Tensor& head, const at::Tensor& targets) {
  auto logits = at::linear(x.view({-1, x.size(-1)}), head);
  return at::cross_entropy_loss(logits, targets.reshape({-1}));
}

at::Tensor conv1d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  auto shape = x.sizes().vec();
  shape.back() = weight.size(1);
  return at::addmm(bias, x.reshape({-1, weight.size(0)}), weight).view(shape);
}

error model_error(const std::string& key, const std::string& value, const std::string& what) {
  return {errc::config, "model." + key + " = " + value + ": " + what};
}

result<void> check_language_model(const core::model_options& o) {
  constexpr std::uint32_t layers_max = core::block_count_max - 2;  // embedding and head
  auto positive = [](const char* key, std::uint32_t value) -> result<void> {
    if (value == 0) return model_error(key, "0", "must be at least 1");
    return {};
  };
  TRY_VOID(positive("layers", o.layers));
  TRY_VOID(positive("dim", o.dim));
  TRY_VOID(positive("heads", o.heads));
  TRY_VOID(positive("seq_len", o.seq_len));
  TRY_VOID(positive("vocab_size", o.vocab_size));
  if (o.layers > layers_max)
    return model_error("layers", std::to_string(o.layers),
                       "at most " + std::to_string(layers_max) + " are possible");
  if (o.dim % o.heads != 0)
    return model_error("dim", std::to_string(o.dim),
                       "is not a multiple of model.heads = " + std::to_string(o.heads));
  if (!(o.dropout >= 0 && o.dropout < 1))
    return model_error("dropout", std::to_string(o.dropout), "must be at least 0 and below 1");
  return {};
}

double residual_deviation(std::uint32_t layers) {
  return initial_deviation / std::sqrt(2.0 * layers);
}

}  // namespace shoal::engine
