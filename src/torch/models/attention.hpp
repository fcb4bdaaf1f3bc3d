#pragma once
// What both language models share: causal attention, dropout, the loss, and checks of [model].

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "core/job.hpp"
#include "shoal/model.hpp"

namespace shoal::engine {

/// Multiplies by a mask of 1/(1-rate) and 0 from `p.random`; `t` itself when `rate` is 0 or the
/// pass does not train. Draws nothing then.
at::Tensor dropout(const at::Tensor& t, double rate, pass& p);

/// Causal attention. `query`, `key` and `value` are [m, heads, t, d]; so is the result. Scores are
/// scaled by 1/sqrt(d); probabilities are dropped out with `rate` in training.
at::Tensor causal_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            double rate, pass& p);

/// The loss of a language model, mean over tokens: logits are x [m, t, d] times the transpose of
/// `head` [vocabulary, d]; `targets` is int64 [m, t].
at::Tensor next_token_loss(const at::Tensor& x, const at::Tensor& head, const at::Tensor& targets);

/// x [..., in] with weight [in, out] and bias [out], as HF's Conv1D: x weight + bias.
at::Tensor conv1d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// What holds for every language model: sizes above 0, heads that divide dim, dropout in [0, 1), as
/// many layers as there may be blocks. `errc::config`, naming the key.
result<void> check_language_model(const core::model_options& o);

/// An error about a key of [model].
error model_error(const std::string& key, const std::string& value, const std::string& what);

/// Deviation of weights at the beginning, and of those that write into the residual stream: the
/// sum over layers keeps its size.
constexpr double initial_deviation = 0.02;
double residual_deviation(std::uint32_t layers);

}  // namespace shoal::engine
