#pragma once
// A node's part of the protocol: does what the supervisor says, keeps views apart, and goes on
// training when the supervisor is away.
//
//           prepare            runner_prepared          commit
//   idle  ----------> preparing ------------> prepared ----------> training
//   holding ---^          |                       |                   | halt, trouble, last_of_view
//      ^                  +------- halt ----------+-------------------+
//      +------------------------------------------------- runner_halted
//
// Freshness: commands of a lower term than the highest seen, and anything of a view below the
// highest heard of, are dropped. A higher view in any message halts the old one. A node that was
// frozen for longer than timeouts.failure, or unheard for timeouts.orphan, stops by itself.
//
// Pure and single-threaded: one owner calls `step` and `tick` and carries out the actions in order.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/job.hpp"
#include "core/messages.hpp"
#include "core/morph/supervisor_io.hpp"
#include "core/ports.hpp"
#include "core/time.hpp"

namespace shoal::core {

// -- events ---------------------------------------------------------------------------------------

/// A connection to a supervisor stands: the machine says hello.
struct supervisor_found {};
/// It ended. The shell goes on knocking, with a backoff of at most timeouts.failure.
struct supervisor_lost {
  std::string reason;
};
struct from_supervisor {
  supervisor_message what;
};
/// From the runner of this node.
struct from_runner {
  runner_event what;
};
/// What nodes say to one another.
using peer_message = std::variant<stage_report, replica_report, verdict, parts_written>;
/// From another node; or, with `from` = this node, from its own coordinator to its own stage.
struct from_peer {
  node_id from;
  peer_message what;
};
/// A control connection to a member of the view in force ended, or could not be made.
struct peer_lost {
  node_id peer;
  std::string reason;
};
/// From the coordinator of this node, for the supervisor. `from` is filled in here.
struct from_coordinator {
  std::variant<decided, diverged, trouble> what;
};
/// From the checkpoint writer of this node. `from` is filled in here.
struct from_writer {
  std::variant<parts_written, checkpoint_done> what;
};
/// SIGTERM: go, but hand over first.
struct leave_signal {
  std::string reason;
};
using member_event =
  std::variant<supervisor_found, supervisor_lost, from_supervisor, from_runner, from_peer,
               peer_lost, from_coordinator, from_writer, leave_signal>;

// -- actions --------------------------------------------------------------------------------------

struct to_supervisor {
  node_message what;
};
/// To the NODE actor at `at`, never this node itself.
struct to_peer {
  member to;
  peer_message what;
};
/// The supervisor has let us in. At the first one the engine is made from the job's text; later
/// ones repeat it (the machine has checked that it is the same job).
struct joined {
  welcome what;
};
struct runner_get_ready {
  prepare what;
  sender self;
};
struct runner_begin {
  view_id view;
};
struct runner_decide {
  verdict what;
};
struct runner_halt {};
/// This node is stage 0 of `replica`: make its coordinator (see coordinator_machine).
struct start_coordinator {
  view_id view;
  sender self;
  layout shape;
  replica_index replica = 0;
  std::vector<member> members;
  step_id step;  ///< weights that the view starts from
};
struct stop_coordinator {};
/// For the coordinator of this node; it belongs to the view that the coordinator was made for.
struct to_coordinator {
  std::variant<stage_report, replica_report, verdict, drain> what;
};
/// Write these blocks; answered by from_writer{parts_written}.
struct write_checkpoint {
  runner_snapshot what;
};
/// This node leads: its checkpoint writer gathers the parts (see part_collector).
struct collect_parts {
  parts_written what;
};
/// The process ends. Nothing follows.
struct exit_node {
  std::optional<errc> failure;  ///< nothing: success
  std::string reason;
};
using member_action = std::variant<to_supervisor, to_peer, joined, runner_get_ready, runner_begin,
                                   runner_decide, runner_halt, start_coordinator, stop_coordinator,
                                   to_coordinator, write_checkpoint, collect_parts, exit_node>;

/// What a node knows of itself before it is in.
struct member_options {
  std::string build;
  endpoint at;
  std::uint64_t process = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t job = 0;     ///< digest of the job file, 0 when not known
  timeout_options timeouts;  ///< replaced by the job's through `use`
};

class member_machine {
public:
  explicit member_machine(member_options options);

  std::vector<member_action> step(time_point now, const member_event& event);

  /// To be called every heartbeat_interval(timeouts): sends the heartbeat, watches the lease.
  std::vector<member_action> tick(time_point now, const runner_progress& progress,
                                  std::uint64_t resident_bytes);

  /// The engine that `joined` asked for is there; these are its job's timeouts.
  void use(const timeout_options& timeouts) {
    options_.timeouts = timeouts;
    started_ = true;
  }

  sender self() const { return self_; }
  activity doing() const { return doing_; }
  view_id view() const { return highest_; }
  /// The prepared or running layout; empty before the first and while holding.
  const layout& shape() const { return plan_.shape; }

private:
  using actions = std::vector<member_action>;
  /// Where a past or present view sends its checkpoint parts.
  struct view_lead {
    view_id view;
    member lead;
  };

  void on(time_point now, const supervisor_found& event, actions& out);
  void on(time_point now, const supervisor_lost& event, actions& out);
  void on(time_point now, const from_supervisor& event, actions& out);
  void on(time_point now, const from_runner& event, actions& out);
  void on(time_point now, const from_peer& event, actions& out);
  void on(time_point now, const peer_lost& event, actions& out);
  void on(time_point now, const from_coordinator& event, actions& out);
  void on(time_point now, const from_writer& event, actions& out);
  void on(time_point now, const leave_signal& event, actions& out);

  void obey(time_point now, const welcome& command, actions& out);
  void obey(time_point now, const refused& command, actions& out);
  void obey(time_point now, const halt& command, actions& out);
  void obey(time_point now, const prepare& command, actions& out);
  void obey(time_point now, const commit& command, actions& out);
  void obey(time_point now, const drain& command, actions& out);
  void obey(time_point now, const stop& command, actions& out);
  void obey(time_point now, const lease& command, actions& out);

  void happened(const runner_prepared& event, actions& out);
  void happened(const runner_failed& event, actions& out);
  void happened(const runner_halted& event, actions& out);
  void happened(const runner_reported& event, actions& out);
  void happened(const runner_snapshot& event, actions& out);

  bool fresh(term_id term);
  void hear_of(view_id view, actions& out);
  void hear(node_id from, const verdict& word, actions& out);
  void keep_lease(time_point now, actions& out);
  void stop_work(actions& out);
  void begin(actions& out);
  void leave(std::optional<errc> failure, const std::string& reason, actions& out);
  void tell(node_message message, actions& out);
  bool in_view(view_id view) const { return view && view == plan_.view && view == highest_; }
  const member* find_member(node_id node) const;
  standing where_i_stand() const;

  member_options options_;
  sender self_;
  term_id term_;
  std::uint64_t job_ = 0;
  view_id highest_;  // of all views heard of
  prepare plan_;     // being prepared or in force; empty otherwise
  place place_;      // in plan_.shape
  bool placed_ = false;
  bool commit_waits_ = false;  // came while we were not ready yet
  bool quiet_ = true;          // the runner was given nothing to do since its last answer to a halt
  bool halt_asked_ = false;    // runner_halt is out, its answer is not
  bool last_asked_ = false;    // a verdict with last_of_view is out: the runner halts by itself
  bool linked_ = false;        // to a supervisor
  bool welcome_ = false;       // by the supervisor of this link
  bool leaving_ = false;
  bool exited_ = false;
  bool started_ = false;  // the engine is there
  activity doing_ = activity::idle;
  standing last_;  // newest answer of the runner
  std::optional<view_id> coordinating_;
  std::vector<view_lead> leads_;
  std::optional<time_point> last_call_;
  time_point knocked_;                     // when the last hello was said
  std::optional<time_point> lease_;        // when the newest heartbeat that was heard had been sent
  std::optional<checkpoint_done> untold_;  // the newest one, told again to each supervisor
  std::string leave_reason_;
};

}  // namespace shoal::core
