#pragma once
// The doors between the actors and what blocks: the tensor plane and the stage runner. Declared
// here so that transport, torch and actors need not know one another.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "core/messages.hpp"
#include "core/plan/link_figures.hpp"

namespace shoal::core {

// -- tensor plane ---------------------------------------------------------------------------------

/// What a frame carries.
enum class frame_kind : std::uint8_t {
  activation,     ///< stage boundary, forward; `block` is the receiver's first block
  gradient,       ///< stage boundary, backward; `block` is the sender's first block
  partial,        ///< one piece of a block's gradient sum, one shard; `part` is the piece's number
  total,          ///< one shard of a block's total gradient; `part` is the shard
  tied,           ///< the total gradient of a tied parameter; `part` is its number in the block
  validation,     ///< stage boundary of a validation pass
  state_request,  ///< send me `block` at `step`; no payload
  state,          ///< one tensor of a block's parameters and optimizer state; `part` numbers them
};

enum class scalar_kind : std::uint8_t { f32, f64, i64, u8 };
std::size_t size_of(scalar_kind kind);

constexpr std::size_t dimension_count_max = 6;

/// Names a frame and says what is in it. Sent before its payload, with its own checksum.
struct frame_header {
  view_id view;
  step_id step;
  frame_kind kind = frame_kind::activation;
  block_index block = 0;
  micro_batch_index micro_batch = 0;
  std::uint32_t part = 0;  ///< which of several tensors with otherwise equal names
  scalar_kind scalar = scalar_kind::f32;
  std::vector<std::int64_t> shape;  ///< at most dimension_count_max
  std::uint64_t bytes = 0;          ///< of the payload: product of shape times size_of(scalar)
};

/// Memory that outlives its use: `owner` keeps it alive until the last copy of this is gone.
struct shared_bytes {
  std::byte* data = nullptr;
  std::size_t size = 0;
  std::shared_ptr<void> owner;  // shared: the plane's thread and the runner's both hold on to it
};

/// The receiver's answer to a header.
struct admission {
  enum class kind : std::uint8_t {
    take,    ///< read the payload into `into`, whose size is header.bytes
    later,   ///< stop reading this connection until `tensor_plane::resume`
    drop,    ///< read and forget: a stale view
    refuse,  ///< close the connection: the peer breaks the protocol, `reason` says how
  };
  kind what = kind::drop;
  shared_bytes into;
  std::string reason;
};

/// Who gets the frames. Called from the plane's thread: return at once, never call back into the
/// plane from here except `resume`.
class tensor_sink {
public:
  virtual ~tensor_sink() = default;
  /// A header has arrived and is well-formed.
  virtual admission admit(node_id from, const frame_header& header) = 0;
  /// The payload of a taken frame is complete and its hash is right.
  virtual void arrived(node_id from, const frame_header& header, shared_bytes payload) = 0;
  /// The connection to or from `peer`, a member of the open view, ended or never came about.
  virtual void broken(node_id peer, error why) = 0;
  /// All members of the view that was opened can be reached.
  virtual void opened(view_id view) = 0;
};

/// Moves tensors between the nodes of a view. Frames between two nodes of one direction class
/// (pipeline: activation, gradient, validation; bulk: the rest) arrive in order. Thread-safe.
class tensor_plane {
public:
  virtual ~tensor_plane() = default;
  /// The port that peers dial.
  virtual std::uint16_t port() const = 0;
  /// Sets who gets frames; once, before `open`.
  virtual void attach(tensor_sink& sink) = 0;
  /// Makes no more calls to the sink once this returns, so that it may be destroyed before the
  /// plane; waits for a running call. For good. Not from the sink.
  virtual void detach() = 0;
  /// Enters `view` as `self` with `peers` (not self). Connections to members of the view before are
  /// kept when node, incarnation and endpoint are the same; others are closed. Dials the missing
  /// ones in the background until `deadline` from now; `opened` or `broken` follows.
  virtual void open(view_id view, sender self, std::vector<member> peers,
                    std::chrono::nanoseconds deadline) = 0;
  /// Ends the view at once: frames not yet begun are dropped, no more `arrived` or `broken` of it
  /// after this returns. Connections stay.
  virtual void halt() = 0;
  /// Sends to a member of the open view; owns `payload` until sent or halted. A header of another
  /// view than the open one is dropped. Never blocks; a failure comes as `broken`.
  virtual void send(node_id to, frame_header header, shared_bytes payload) = 0;
  /// Asks `admit` again for the connections from `from` that were told `later`.
  virtual void resume(node_id from) = 0;
  /// Bytes sent and received so far, for status and benchmarks.
  virtual std::pair<std::uint64_t, std::uint64_t> traffic() const = 0;
  /// What the links with peers of the open view were measured with so far, at most once a peer: the
  /// rate that large frames come with, the way of those sent. For plans, never for what is trained.
  virtual std::vector<peer_link> links() const = 0;
};

// -- stage runner ---------------------------------------------------------------------------------

/// What a block is in memory: parameters and optimizer state, in a fixed order.
struct state_tensor {
  std::string name;  ///< "h.0.attn.c_attn.weight", "h.0.attn.c_attn.weight.exp_avg"
  std::vector<std::int64_t> shape;
  scalar_kind scalar = scalar_kind::f32;
  shared_bytes bytes;
};
struct block_state {
  block_index block = 0;
  std::uint64_t digest = 0;  ///< of the parameters
  std::vector<state_tensor> tensors;
};

/// Where blocks without a live holder come from. Called from the runner's thread; may take long.
/// Checks everything it reads: `errc::damaged`, `errc::foreign`, `errc::io`.
class block_store {
public:
  virtual ~block_store() = default;
  virtual result<block_state> load(step_id checkpoint, block_index block) = 0;
};

/// The runner's answers, in the order in which things happened.
struct runner_prepared {  ///< to `prepare`
  view_id view;
  std::vector<held_block> blocks;
};
struct runner_failed {  ///< to `prepare`; or a broken promise of a peer while training
  view_id view;
  error why;
  node_id suspect;             ///< 0: none
  step_id damaged_checkpoint;  ///< 0: none
};
struct runner_halted {  ///< to `halt`, and after a verdict with `last_of_view`
  standing now;         ///< from, view and doing are filled in by the node
};
struct runner_reported {  ///< all sums of a round are complete
  stage_report report;    ///< from is filled in by the node
};
/// State of blocks at a step boundary, to be written while training goes on.
struct runner_snapshot {
  view_id view;
  step_id step;
  std::vector<block_state> blocks;  ///< copies: training may go on. Only what this node is to write
};
using runner_event =
  std::variant<runner_prepared, runner_failed, runner_halted, runner_reported, runner_snapshot>;

/// How far the current round has come; any thread may read it.
struct runner_progress {
  view_id view;
  step_id step;
  std::uint32_t actions_done = 0;
};

/// Runs one stage on a thread of its own. All calls return at once; answers come through the sink
/// that the constructor was given, from the runner's thread. Exactly one answer to each prepare
/// (unless a halt overtakes it) and to each halt.
class stage_runner {
public:
  virtual ~stage_runner() = default;
  /// Roll forward, drop the blocks that are no longer held (after everyone is ready: at begin),
  /// fetch the missing ones, connect.
  virtual void get_ready(prepare plan, sender self) = 0;
  /// Everyone is ready: train the prepared view. From `runner_prepared` on, a broken connection to
  /// a member without a place in the layout is no failure: it only served its blocks, and may go.
  virtual void begin(view_id view) = 0;
  /// The lead's word on the current round.
  virtual void decide(verdict what) = 0;
  /// Stop at once, hold the state. Answered by runner_halted, also when nothing runs.
  virtual void halt() = 0;
  virtual runner_progress progress() const = 0;
};

}  // namespace shoal::core
