#pragma once
// GPT-2 with the names and semantics of Hugging Face's GPT2LMHeadModel:
//
//   embedding: wte[token] + wpe[position], dropout
//   h.N:       x + attn(ln_1(x)), then x + mlp(ln_2(x)); attention is causal, the MLP's gelu is the
//              tanh form; dropout on attention probabilities and on both branches
//   head:      ln_f, logits by wte transposed (tied: one logical parameter, two copies), loss
//
// A layer's weights are [in, out] as in HF's Conv1D.

#include "base/result.hpp"
#include "core/job.hpp"
#include "shoal/model.hpp"

namespace shoal::engine {

/// The chain [embedding, h.0, ..., h.(layers-1), head]. `errc::config` naming the key.
result<chain> make_gpt2(const core::model_options& options);

}  // namespace shoal::engine
