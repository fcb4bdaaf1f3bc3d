#include "torch/runner/inbox.hpp"

#include <exception>
#include <string>

#include <ATen/ops/empty.h>

#include "base/assert.hpp"

namespace shoal::engine {

namespace {

using answer = core::admission::kind;

core::admission refuse(const frame_name& name, const std::string& why) {
  return {answer::refuse, {}, text_of(name) + ": " + why};
}

core::admission drop() { return {answer::drop, {}, {}}; }

std::string text_of_shape(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (auto size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

bool of_a_round(core::frame_kind kind) {
  return kind != core::frame_kind::state_request && kind != core::frame_kind::state;
}

}  // namespace

// -- any thread -----------------------------------------------------------------------------------

void inbox::post(inbox_event event) {
  std::lock_guard lock(mutex_);
  note(std::move(event));
}

void inbox::quit() {
  std::lock_guard lock(mutex_);
  quitting_ = true;
  ++news_;
  changed_.notify_one();
}

void inbox::note(inbox_event event) {
  events_.push_back(std::move(event));
  ++news_;
  changed_.notify_one();
}

// -- the plane's thread ---------------------------------------------------------------------------

core::admission inbox::admit(node_id from, const core::frame_header& header) {
  std::lock_guard lock(mutex_);
  if (header.view > view_) return later(from);
  if (header.view < view_ || !inside_) return drop();
  if (header.kind == core::frame_kind::state_request) return admit_request(from, header);
  auto name = name_of(header);
  auto found = owed_.find(name);
  if (found == owed_.end()) return admit_unexpected(from, name);
  if (found->second.what.from != from) {
    // The answer of a source that we have given up for another one.
    if (name.kind == core::frame_kind::state) return drop();
    return refuse(name, "node " + std::to_string(found->second.what.from.value) +
                          " is to send it, not node " + std::to_string(from.value));
  }
  return take_in(found->second, header);
}

core::admission inbox::later(node_id from) {
  waiting_.insert(from);
  return {answer::later, {}, {}};
}

core::admission inbox::admit_request(node_id from, const core::frame_header& header) {
  auto name = name_of(header);
  if (header.step != start_)
    return refuse(name, "this view starts from step " + std::to_string(start_.value));
  if (header.block >= block_count_)
    return refuse(name, "there are " + std::to_string(block_count_) + " blocks");
  if (header.bytes != 0) return refuse(name, "a request has no payload");
  if (!requests_.emplace(from, header.block).second) return refuse(name, "it was asked before");
  return {answer::take, {}, {}};
}

core::admission inbox::admit_unexpected(node_id from, const frame_name& name) {
  if (name.kind == core::frame_kind::state) return drop();
  if (of_a_round(name.kind) && name.step == newest_round_.next()) return later(from);
  return refuse(
    name, "nobody waits for it; the newest round here is " + std::to_string(newest_round_.value));
}

core::admission inbox::take_in(entry& owed, const core::frame_header& header) {
  auto& what = owed.what;
  if (owed.taken) return refuse(what.name, "it was sent before");
  bool absent = what.may_be_absent && header.shape == std::vector<std::int64_t>{0};
  if (header.scalar != what.scalar || (!absent && header.shape != what.shape))
    return refuse(what.name, "its shape is " + text_of_shape(header.shape) + " of scalar kind " +
                               std::to_string(static_cast<int>(header.scalar)) + ", expected " +
                               text_of_shape(what.shape) + " of kind " +
                               std::to_string(static_cast<int>(what.scalar)));
  try {
    owed.tensor = what.into.defined() && !absent
                    ? what.into
                    : at::empty(header.shape, at::TensorOptions(type_of(what.scalar)));
  } catch (const std::exception&) {
    return refuse(what.name, "no memory for its " + std::to_string(header.bytes) + " bytes");
  }
  if (owed.tensor.nbytes() != header.bytes)
    return refuse(what.name, "its " + std::to_string(header.bytes) + " bytes do not fit its shape");
  owed.taken = true;
  return {answer::take, payload_of(owed.tensor), {}};
}

void inbox::arrived(node_id from, const core::frame_header& header, core::shared_bytes payload) {
  std::lock_guard lock(mutex_);
  if (!inside_ || header.view != view_) return;
  if (header.kind == core::frame_kind::state_request)
    return note(state_asked{header.view, from, header.block});
  auto found = owed_.find(name_of(header));
  if (found == owed_.end()) return;
  auto& owed = found->second;
  // A source that was given up may still be writing into memory of its own.
  if (owed.what.from != from || !owed.taken || payload.data != owed.tensor.data_ptr()) return;
  owed.complete = true;
  ++news_;
  changed_.notify_one();
}

void inbox::broken(node_id peer, error why) {
  std::lock_guard lock(mutex_);
  if (inside_) note(peer_broken{view_, peer, std::move(why)});
}

void inbox::opened(view_id view) {
  std::lock_guard lock(mutex_);
  if (inside_ && view == view_) note(view_opened{view});
}

// -- the trainer's thread -------------------------------------------------------------------------

void inbox::enter(view_id view, step_id step, std::uint32_t block_count) {
  std::lock_guard lock(mutex_);
  SHOAL_ASSERT(view >= view_);
  view_ = view;
  inside_ = true;
  start_ = newest_round_ = step;
  block_count_ = block_count;
  owed_.clear();
  requests_.clear();
}

void inbox::leave() {
  std::lock_guard lock(mutex_);
  inside_ = false;
  owed_.clear();
  requests_.clear();
}

void inbox::add(std::vector<expected_frame> frames) {
  SHOAL_ASSERT(inside_);
  for (auto& frame : frames) {
    auto name = frame.name;
    bool fresh = owed_.emplace(name, entry{.what = std::move(frame), .tensor = {}}).second;
    SHOAL_ASSERT(fresh);
  }
}

void inbox::expect(std::vector<expected_frame> frames) {
  std::lock_guard lock(mutex_);
  add(std::move(frames));
}

void inbox::open_round(step_id step, std::vector<expected_frame> frames) {
  std::lock_guard lock(mutex_);
  SHOAL_ASSERT(step == newest_round_.next());
  newest_round_ = step;
  add(std::move(frames));
}

void inbox::forget_state(block_index block) {
  std::lock_guard lock(mutex_);
  std::erase_if(owed_, [&](auto& owed) {
    return owed.first.kind == core::frame_kind::state && owed.first.block == block;
  });
}

std::vector<node_id> inbox::take_waiting() {
  std::lock_guard lock(mutex_);
  std::vector<node_id> nodes(waiting_.begin(), waiting_.end());
  waiting_.clear();
  return nodes;
}

bool inbox::has(const frame_name& name) const {
  std::lock_guard lock(mutex_);
  auto found = owed_.find(name);
  return found != owed_.end() && found->second.complete;
}

at::Tensor inbox::take(const frame_name& name) {
  std::lock_guard lock(mutex_);
  auto found = owed_.find(name);
  if (found == owed_.end() || !found->second.complete) return {};
  auto tensor = std::move(found->second.tensor);
  owed_.erase(found);
  return tensor;
}

std::optional<inbox_event> inbox::take_event() {
  std::lock_guard lock(mutex_);
  if (events_.empty()) return std::nullopt;
  auto event = std::move(events_.front());
  events_.pop_front();
  return event;
}

bool inbox::quitting() const {
  std::lock_guard lock(mutex_);
  return quitting_;
}

std::uint64_t inbox::news() const {
  std::lock_guard lock(mutex_);
  return news_;
}

void inbox::wait(std::uint64_t seen, std::optional<core::time_point> deadline) {
  std::unique_lock lock(mutex_);
  auto woken = [&] { return news_ != seen || quitting_; };
  if (deadline)
    changed_.wait_until(lock, *deadline, woken);
  else
    changed_.wait(lock, woken);
}

}  // namespace shoal::engine
