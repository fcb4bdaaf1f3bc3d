#pragma once
// What a model is to shoal: a chain of blocks.
//
//   samples -> [block 0] -> tensors -> [block 1] -> ... -> [last block] -> loss
//
// A block is the smallest piece that can be placed on a node; a stage boundary may lie between any
// two. Blocks are descriptions: they own no tensor and cost nothing to make. Parameters are
// allocated only on the nodes that hold the block, and handed to `forward`.
//
// To keep the promise of same bits, `forward` must be a pure function of its arguments: it keeps
// nothing between calls, draws random numbers only from `pass.random`, and reads nothing else.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/rng.hpp"

namespace shoal {

using tensors = std::vector<at::Tensor>;

/// How a parameter begins. Values come from (job seed, parameter name) alone.
struct initial {
  enum class kind : std::uint8_t { zeros, ones, normal };
  kind what = kind::normal;
  double deviation = 0.02;  ///< normal
};

/// A parameter of a block, float32. Parameters of the same name in several blocks of a chain are
/// *tied*: one logical parameter with a copy in each block. They must agree in shape and initial;
/// their gradients are added in chain order, and they count once in the gradient norm.
struct parameter_spec {
  std::string name;  ///< unique in the block; by Hugging Face's names where there are some
  std::vector<std::int64_t> shape;
  initial begin;
};

/// Shape and type of one tensor that crosses a boundary.
struct tensor_spec {
  std::vector<std::int64_t> shape;
  bool floating = true;  ///< float32, else int64; only floating ones have gradients
};

/// The data of one micro-batch. Shapes are the model's business: for language models both are int64
/// [micro_batch_size, seq_len].
struct micro_batch {
  at::Tensor inputs;   ///< what block 0 gets
  at::Tensor targets;  ///< what the last block compares with
};

/// The circumstances of one forward pass.
struct pass {
  bool training = true;     ///< false in validation: no dropout
  rng random;               ///< this block's own stream for (seed, step, micro-batch)
  const micro_batch* data;  ///< valid in block 0 (inputs) and the last block (targets); else null
};

/// One link of the chain. Thread rule: const and without state, so usable from any thread.
class block {
public:
  virtual ~block() = default;

  /// For people: "h.3", "embedding".
  virtual std::string name() const = 0;

  /// In a fixed order; that of tensors given to `forward`.
  virtual std::vector<parameter_spec> parameters() const = 0;

  /// What `forward` returns for a micro-batch of `size` samples. The last block returns one scalar:
  /// the mean loss over the micro-batch.
  virtual std::vector<tensor_spec> outputs(std::int64_t size) const = 0;

  /// Computes outputs from `inputs` (the previous block's outputs; block 0: {data->inputs}) and
  /// `parameters` (in the order of parameters()). Differentiable by autograd. May throw c10::Error
  /// for impossible shapes; the runner reports it with the block's name.
  virtual tensors forward(const tensors& inputs, const tensors& parameters, pass& p) const = 0;

  /// Relative cost of one micro-batch, for the first plan, before anything was measured: about the
  /// number of multiplications. The default is one a parameter and sample.
  virtual double work(std::int64_t size) const;
};

/// A whole model. Never empty.
using chain = std::vector<std::unique_ptr<const block>>;

}  // namespace shoal
