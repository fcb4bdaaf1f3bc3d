#include "transport/sink_gate.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace shoal::transport {

void sink_gate::attach(core::tensor_sink& sink) {
  std::lock_guard lock(mutex_);
  SHOAL_ASSERT(!sink_);
  sink_ = &sink;
}

void sink_gate::open(view_id view) {
  std::lock_guard lock(mutex_);
  SHOAL_ASSERT(sink_ && view);
  newest_ = view;
  dead_ = view.before();
  broken_.clear();
}

void sink_gate::halt() {
  std::lock_guard lock(mutex_);
  dead_ = std::max(dead_, newest_);
}

void sink_gate::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
}

bool sink_gate::live(view_id view) const {
  std::lock_guard lock(mutex_);
  return !closed_ && view > dead_;
}

core::admission sink_gate::admit(node_id from, const core::frame_header& header) {
  std::lock_guard lock(mutex_);
  if (closed_ || header.view <= dead_) return {.what = core::admission::kind::drop, .into = {}, .reason = {}};
  if (!sink_) return {.what = core::admission::kind::later, .into = {}, .reason = {}};
  return sink_->admit(from, header);
}

void sink_gate::arrived(node_id from, const core::frame_header& header, core::shared_bytes payload) {
  std::lock_guard lock(mutex_);
  if (!closed_ && sink_ && header.view > dead_) sink_->arrived(from, header, std::move(payload));
}

void sink_gate::broken(view_id view, node_id peer, error why) {
  std::lock_guard lock(mutex_);
  if (current(view) && broken_.insert(peer).second) sink_->broken(peer, std::move(why));
}

void sink_gate::opened(view_id view) {
  std::lock_guard lock(mutex_);
  if (current(view) && broken_.empty()) sink_->opened(view);
}

}  // namespace shoal::transport
