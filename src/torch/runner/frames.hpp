#pragma once
// Tensors as frames: names of what travels in a round, and payloads that share a tensor's memory.

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/ports.hpp"

namespace shoal::engine {

/// Which tensor a frame carries, within a view.
struct frame_name {
  step_id step;
  core::frame_kind kind = core::frame_kind::activation;
  block_index block = 0;
  micro_batch_index micro_batch = 0;
  std::uint32_t part = 0;
  friend auto operator<=>(const frame_name&, const frame_name&) = default;
};

/// A tensor that somebody owes us.
struct expected_frame {
  frame_name name;
  node_id from;
  core::scalar_kind scalar = core::scalar_kind::f32;
  std::vector<std::int64_t> shape;
  at::Tensor into = {};        ///< contiguous; undefined: memory is allocated when the frame comes
  bool may_be_absent = false;  ///< shape {0} is an answer too: "I do not have it"
};

frame_name name_of(const core::frame_header& header);
/// "gradient of block 3, micro-batch 2, part 0, step 7"
std::string text_of(const frame_name& name);

at::ScalarType type_of(core::scalar_kind scalar);
core::scalar_kind scalar_of(const at::Tensor& t);

/// The bytes of a contiguous tensor, which lives on with them. Holds no differentiation graph.
core::shared_bytes payload_of(const at::Tensor& t);

core::frame_header header_of(view_id view, const frame_name& name, const at::Tensor& t);

}  // namespace shoal::engine
