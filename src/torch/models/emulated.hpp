#pragma once
// A model that waits instead of computing, for experiments on machines with fewer cores than nodes.
//
//   [model]
//   kind = "emulated"        # its weights mean nothing
//   layers = 8
//   dim = 256                # boundary tensors: micro_batch_size x seq_len x dim floats
//   [model.custom]
//   forward = "10ms"         # of one layer, one micro-batch
//   backward = "20ms"
//
// Tensors, gradients, sums and optimizer are real, and so are all bytes on the wire; the kernels of
// a layer are replaced by a timed wait. Same bits as ever. Who uses it says so: `model.kind` is
// part of every job file, profile and metrics file.

#include "base/result.hpp"
#include "core/job.hpp"
#include "shoal/model.hpp"

namespace shoal::engine {

/// The chain [embedding, layer.0, ..., head]. `errc::config` naming the key.
result<chain> make_emulated(const core::model_options& options);

}  // namespace shoal::engine
