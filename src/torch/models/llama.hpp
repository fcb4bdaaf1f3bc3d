#pragma once
// A Llama with the names and semantics of Hugging Face's LlamaForCausalLM:
//
//   embedding: embed_tokens[token]
//   layers.N:  x + o_proj(attention(rms_norm(x))), then x + down(silu(gate(y)) * up(y)) with
//              y = rms_norm(x); rotary positions, heads split in halves; kv_heads keys and values,
//              each shared by heads / kv_heads queries
//   head:      rms_norm, logits by lm_head (not tied), loss
//
// Weights are [out, in]; there are no biases. Dropout, which HF's has on attention alone, sits
// where GPT-2 has it.

#include "base/result.hpp"
#include "core/job.hpp"
#include "shoal/model.hpp"

namespace shoal::engine {

/// The chain [embedding, layers.0, ..., layers.(layers-1), head]. `errc::config` naming the key.
result<chain> make_llama(const core::model_options& options);

}  // namespace shoal::engine
