#pragma once
// Everything that comes to the trainer thread: orders of the node, events of the plane, frames.
//
// Frames are judged by a table of what peers owe us, filled before they can owe it:
//
//   of an older view                          drop
//   of a newer view, or of the next round     later: the plane stops reading until we are there
//   in the table, from the right node, of the right shape      take, once
//   anything else                             refuse: the peer breaks the protocol
//
// So no more memory is given to a peer than the table says, and a frame never meets a round that it
// does not belong to. The plane's thread only locks, looks up and allocates.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/ports.hpp"
#include "core/time.hpp"
#include "torch/runner/frames.hpp"

namespace shoal::engine {

// -- orders of the node ---------------------------------------------------------------------------

struct get_ready_order {
  core::prepare plan;
  core::sender self;
};
struct begin_order {
  view_id view;
};
struct decide_order {
  core::verdict what;
};
struct halt_order {};

// -- events of the plane; `view` is the one that was entered when they came -----------------------

struct peer_broken {
  view_id view;
  node_id peer;
  error why;
};
struct view_opened {
  view_id view;
};
/// A peer wants the state of a block, at the step that the view starts from.
struct state_asked {
  view_id view;
  node_id from;
  block_index block = 0;
};

using inbox_event = std::variant<get_ready_order, begin_order, decide_order, halt_order,
                                 peer_broken, view_opened, state_asked>;

class inbox final : public core::tensor_sink {
public:
  // -- any thread --

  void post(inbox_event event);
  /// The trainer thread is to end.
  void quit();

  // -- the plane's thread --

  core::admission admit(node_id from, const core::frame_header& header) override;
  void arrived(node_id from, const core::frame_header& header, core::shared_bytes payload) override;
  void broken(node_id peer, error why) override;
  void opened(view_id view) override;

  // -- the trainer's thread; never hold on to the plane's locks while calling --

  /// From now on frames of `view`, which starts from weights of `step`, are judged by the table,
  /// which is empty. Peers may ask for the state of `block_count` blocks.
  void enter(view_id view, step_id step, std::uint32_t block_count);
  /// Forgets the table; frames of the view are dropped.
  void leave();

  /// Frames of the view's state, or more of a round that is open.
  void expect(std::vector<expected_frame> frames);
  /// All frames of the round `step`, the one after the newest that was opened.
  void open_round(step_id step, std::vector<expected_frame> frames);
  /// Does not wait for the state of a block from a peer any more.
  void forget_state(block_index block);
  /// Peers that were told `later` since the last call, for tensor_plane::resume.
  std::vector<node_id> take_waiting();

  /// Whether that frame is complete.
  bool has(const frame_name& name) const;
  /// Takes it out of the table; undefined when it is not complete.
  at::Tensor take(const frame_name& name);

  /// Orders and events in order of arrival.
  std::optional<inbox_event> take_event();
  bool quitting() const;
  /// Grows whenever there is something new.
  std::uint64_t news() const;
  /// Waits until news() is not `seen` any more, or until the deadline; not at all when quitting.
  void wait(std::uint64_t seen, std::optional<core::time_point> deadline);

private:
  struct entry {
    expected_frame what;
    bool taken = false;
    bool complete = false;
    at::Tensor tensor;
  };

  void note(inbox_event event);
  void add(std::vector<expected_frame> frames);
  core::admission later(node_id from);
  core::admission admit_request(node_id from, const core::frame_header& header);
  core::admission admit_unexpected(node_id from, const frame_name& name);
  core::admission take_in(entry& owed, const core::frame_header& header);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<inbox_event> events_;
  std::uint64_t news_ = 0;
  bool quitting_ = false;

  view_id view_;          // entered last
  bool inside_ = false;   // and not left
  step_id start_;         // of the view
  step_id newest_round_;  // whose frames are in the table
  std::uint32_t block_count_ = 0;
  std::map<frame_name, entry> owed_;
  std::set<node_id> waiting_;                           // told `later`
  std::set<std::pair<node_id, block_index>> requests_;  // of state, each once
};

}  // namespace shoal::engine
