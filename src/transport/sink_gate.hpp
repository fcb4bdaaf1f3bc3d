#pragma once
// The one door through which a plane calls its sink. It can be shut from any thread, and once it is
// shut for a view, nothing of that view is inside or comes out any more.
//
//   views   ... 5    6    7 | 8    9 ...
//               dead: drop  | live: the sink is asked
//                 ended here by halt(), or by open(8)
//
// View numbers only grow, so "dead" is one number. A frame of a later view than the open one is the
// sink's to judge: its sender has merely opened the view before we did.

#include <atomic>
#include <mutex>
#include <set>

#include "core/ports.hpp"

namespace shoal::transport {

/// Each call to the sink is made under one lock, which `open`, `halt` and `close` take too: they
/// wait for a running call and nothing else. So never call them from the sink, nor while holding a
/// lock that the sink takes.
class sink_gate {
public:
  // -- from any thread --

  /// Once, before the first open.
  void attach(core::tensor_sink& sink);
  /// Views before `view` are dead; `broken` and `opened` are told of `view` from now on.
  void open(view_id view);
  /// The view that was opened last is dead.
  void halt();
  /// Everything is dead, for good.
  void close();
  bool live(view_id view) const;

  // -- from the plane's thread; each is dropped when its view is dead --

  /// `drop` for a dead view; `later` while no sink is attached.
  core::admission admit(node_id from, const core::frame_header& header);
  void arrived(node_id from, const core::frame_header& header, core::shared_bytes payload);
  /// Once a peer and view.
  void broken(view_id view, node_id peer, error why);
  void opened(view_id view);

private:
  bool current(view_id view) const { return sink_ && view == newest_.load() && live(view); }
  void wait_for_running_call() { std::lock_guard lock(mutex_); }

  std::mutex mutex_;  // held during each call to the sink
  core::tensor_sink* sink_ = nullptr;
  std::set<node_id> broken_;  // in newest_
  // Readable without the lock, and written before it is taken: a plane's thread that calls the sink
  // again and again might otherwise win the lock again and again.
  std::atomic<view_id> newest_{};  // given to open() last
  std::atomic<view_id> dead_{};    // this one and all before
  std::atomic<bool> closed_ = false;
};

}  // namespace shoal::transport
