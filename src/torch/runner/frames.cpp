#include "torch/runner/frames.hpp"

#include <memory>

#include "base/assert.hpp"

namespace shoal::engine {

namespace {

const char* text_of(core::frame_kind kind) {
  switch (kind) {
    case core::frame_kind::activation:
      return "activation";
    case core::frame_kind::gradient:
      return "gradient";
    case core::frame_kind::partial:
      return "partial sum";
    case core::frame_kind::total:
      return "total";
    case core::frame_kind::tied:
      return "tied gradient";
    case core::frame_kind::validation:
      return "validation activation";
    case core::frame_kind::state_request:
      return "state request";
    case core::frame_kind::state:
      return "state";
  }
  return "frame of unknown kind";
}

}  // namespace

frame_name name_of(const core::frame_header& header) {
  return {header.step, header.kind, header.block, header.micro_batch, header.part};
}

std::string text_of(const frame_name& name) {
  return std::string(text_of(name.kind)) + " of block " + std::to_string(name.block) +
         ", micro-batch " + std::to_string(name.micro_batch) + ", part " +
         std::to_string(name.part) + ", step " + std::to_string(name.step.value);
}

at::ScalarType type_of(core::scalar_kind scalar) {
  switch (scalar) {
    case core::scalar_kind::f32:
      return at::kFloat;
    case core::scalar_kind::f64:
      return at::kDouble;
    case core::scalar_kind::i64:
      return at::kLong;
    case core::scalar_kind::u8:
      return at::kByte;
  }
  SHOAL_ASSERT(false);
}

core::scalar_kind scalar_of(const at::Tensor& t) {
  switch (t.scalar_type()) {
    case at::kFloat:
      return core::scalar_kind::f32;
    case at::kDouble:
      return core::scalar_kind::f64;
    case at::kLong:
      return core::scalar_kind::i64;
    case at::kByte:
      return core::scalar_kind::u8;
    default:
      SHOAL_ASSERT(false);
  }
}

core::shared_bytes payload_of(const at::Tensor& t) {
  SHOAL_ASSERT(t.is_contiguous());
  auto owner = std::make_shared<at::Tensor>(t.detach());
  return {static_cast<std::byte*>(owner->data_ptr()), owner->nbytes(), owner};
}

core::frame_header header_of(view_id view, const frame_name& name, const at::Tensor& t) {
  return {.view = view,
          .step = name.step,
          .kind = name.kind,
          .block = name.block,
          .micro_batch = name.micro_batch,
          .part = name.part,
          .scalar = scalar_of(t),
          .shape = t.sizes().vec(),
          .bytes = t.nbytes()};
}

}  // namespace shoal::engine
