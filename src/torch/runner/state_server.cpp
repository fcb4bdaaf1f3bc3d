#include "torch/runner/state_server.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include <ATen/ops/empty.h>

#include "base/assert.hpp"
#include "torch/runner/frames.hpp"

namespace shoal::engine {

at::Tensor digest_tensor(std::uint64_t digest) {
  auto t = at::empty({sizeof(digest)}, at::TensorOptions(at::kByte));
  std::memcpy(t.data_ptr(), &digest, sizeof(digest));
  return t;
}

std::uint64_t digest_of(const at::Tensor& t) {
  std::uint64_t digest = 0;
  SHOAL_ASSERT(t.nbytes() == sizeof(digest));
  std::memcpy(&digest, t.const_data_ptr(), sizeof(digest));
  return digest;
}

void state_server::serve(view_id view, node_id to, block_index block) {
  frame_name name{held_.applied(), core::frame_kind::state, block, 0, 0};
  bool here = held_.has(block);
  auto first =
    here ? digest_tensor(held_.digest(block)) : at::empty({0}, at::TensorOptions(at::kByte));
  plane_.send(to, header_of(view, name, first), payload_of(first));
  if (!here) return;
  for (auto& t : held_.at(block).state_tensors()) {
    ++name.part;
    loans_.push_back({block, t.bytes.owner});
    plane_.send(to,
                {.view = view,
                 .step = name.step,
                 .kind = name.kind,
                 .block = block,
                 .micro_batch = 0,
                 .part = name.part,
                 .scalar = t.scalar,
                 .shape = t.shape,
                 .bytes = t.bytes.size},
                t.bytes);
  }
}

void state_server::call_loans_in() {
  std::set<block_index> lent;
  for (auto& l : loans_)
    if (!l.memory.expired() && held_.has(l.block)) lent.insert(l.block);
  loans_.clear();
  for (auto b : lent) {
    auto moved = std::make_unique<block_runtime>(job_, *model_[b], b);
    auto loaded = moved->load_state(held_.at(b).share_state());
    SHOAL_ASSERT(loaded);
    held_.replace(std::move(moved));
  }
}

}  // namespace shoal::engine
