#include "transport/sink_gate.hpp"

#include "base/assert.hpp"

namespace shoal::transport {

void sink_gate::attach(core::tensor_sink& sink) {
  std::lock_guard lock(mutex_);
  SHOAL_ASSERT(!sink_);
  sink_ = &sink;
}

void sink_gate::open(view_id view) {
  SHOAL_ASSERT(view);
  dead_ = view.before();
  std::lock_guard lock(mutex_);
  SHOAL_ASSERT(sink_);
  newest_ = view;
  broken_.clear();
}

void sink_gate::halt() {
  // Whoever opens and halts at the same time gets either order; one caller gets his own.
  auto newest = newest_.load();
  if (newest > dead_.load()) dead_ = newest;
  wait_for_running_call();
}

void sink_gate::close() {
  closed_ = true;
  wait_for_running_call();
}

bool sink_gate::live(view_id view) const { return !closed_ && view > dead_.load(); }

core::admission sink_gate::admit(node_id from, const core::frame_header& header) {
  std::lock_guard lock(mutex_);
  if (!live(header.view)) return {.what = core::admission::kind::drop, .into = {}, .reason = {}};
  if (!sink_) return {.what = core::admission::kind::later, .into = {}, .reason = {}};
  return sink_->admit(from, header);
}

void sink_gate::arrived(node_id from, const core::frame_header& header,
                        core::shared_bytes payload) {
  std::lock_guard lock(mutex_);
  if (sink_ && live(header.view)) sink_->arrived(from, header, std::move(payload));
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
