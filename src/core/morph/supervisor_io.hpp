#pragma once
// What goes into the supervisor's machine and what comes out of it.
//
//   events:   heard, link_lost, node_exited, checkpoints_found, leave_asked, stop_asked
//   actions:  persist, send, drop_link, report, step_done, finished      (in this very order given)
//
// A *link* is one connection to a NODE. The shell hands out a fresh link_id for each NODE actor
// handle that it meets; the machine knows which node speaks through which link.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/job.hpp"
#include "core/messages.hpp"

namespace shoal::core {

/// One connection to a node, named by the shell; never used twice in a supervisor's life.
using link_id = strong_id<struct link_tag>;

/// All that a node may say to the supervisor, and the other way round.
using node_message = std::variant<hello, standing, ready, failed, heartbeat, trouble, leaving,
                                  decided, diverged, checkpoint_done>;
using supervisor_message =
  std::variant<welcome, refused, halt, prepare, commit, drain, stop, lease>;

// -- the ledger -----------------------------------------------------------------------------------

/// A node of the view in force, as a supervisor that starts again needs to know it.
struct ledger_member {
  sender who;
  endpoint at;
  std::uint64_t process = 0;  ///< pid on its machine
  friend bool operator==(const ledger_member&, const ledger_member&) = default;
};

/// A block of a node that was found wrong at `step`: it is no source for others.
struct distrust {
  node_id node;
  block_index block = 0;
  step_id step;
  friend auto operator<=>(const distrust&, const distrust&) = default;
};

/// What the supervisor must not forget. Small; written whole at each change.
struct ledger_state {
  std::uint64_t job = 0;               ///< digest of the job that this ledger belongs to
  term_id term;                        ///< of the last reign; the next one takes the next
  node_id next_node;                   ///< ids below were given away
  view_id highest;                     ///< no view up to this one may be used again
  view_id running;                     ///< the last committed view; 0: none yet
  layout shape;                        ///< of `running`
  std::vector<ledger_member> members;  ///< of `shape`
  std::vector<distrust> distrusted;
  friend bool operator==(const ledger_state&, const ledger_state&) = default;
};

// -- events ---------------------------------------------------------------------------------------

/// A message came in through `link`.
struct heard {
  link_id link;
  node_message what;
};
/// The connection ended, by the other side or by the network. Not sent after `drop_link`.
struct link_lost {
  link_id link;
  std::string reason;
};
/// A process is known to be gone: a child was reaped, or nobody listens where it did. Either of
/// the two names is enough; the pid is one of this machine.
struct node_exited {
  std::uint64_t process = 0;
  node_id node;
};
/// Which checkpoints exist and belong to this job. Given once, before anything else.
struct checkpoints_found {
  std::vector<step_id> usable;
};
/// `shoal leave`: as if the node itself had said `leaving`.
struct leave_asked {
  node_id node;
};
/// The user or the program ends the job.
struct stop_asked {
  errc code = errc::interrupted;
  std::string reason;
};
using supervisor_event =
  std::variant<heard, link_lost, node_exited, checkpoints_found, leave_asked, stop_asked>;

// -- actions --------------------------------------------------------------------------------------

struct send {
  link_id to;
  supervisor_message what;
};
/// Must be durable before the actions behind it are carried out.
struct persist {
  ledger_state what;
};
/// Close this connection and forget the link; also what is still to be read from it.
struct drop_link {
  link_id link;
};

enum class report_kind : std::uint8_t {
  joined,      ///< a node is in
  lost,        ///< a node is gone, or is said to be
  leaving,     ///< a node has been asked to go
  holding,     ///< the job waits for nodes
  morph,       ///< a new view trains; has `timing`
  stuck,       ///< a node lives but makes no progress
  diverged,    ///< replicas disagreed
  checkpoint,  ///< a checkpoint exists, was dropped or is damaged
  supervisor,  ///< a supervisor's reign began, a running view was adopted
  trouble,     ///< anything else that went wrong and was dealt with
};

/// Where the pause of a morph went. Parts are in order of time and add up to about `pause`.
struct morph_timing {
  nanoseconds detect{};  ///< from the last sign of the lost node's life until we knew; 0 if planned
  nanoseconds agree{};   ///< halt or drain, standings, plan
  nanoseconds rewire{};  ///< until all nodes that lacked no block were connected
  nanoseconds move{};    ///< until the last block had arrived
  nanoseconds redo{};    ///< until a step beyond the last decided one, less one step's own time
  nanoseconds pause{};   ///< last decided step before to first decided after, less one step's time
  bool planned = false;  ///< arrival or leave, not a loss
  std::uint32_t lost = 0;
  std::uint32_t joined = 0;
  std::uint64_t moved_blocks = 0;
  step_id from;  ///< the step that the new view started from
};

/// Something that people want to know.
struct report {
  report_kind kind = report_kind::trouble;
  std::string text;  ///< a plain sentence with the numbers
  node_id node;      ///< 0: of no node in particular
  std::optional<morph_timing> timing;
};
/// A round was decided. `again`: the job had been as far before and came back from a checkpoint.
struct step_done {
  decided what;
  bool again = false;
};
/// The job is over; every node has been told. The last action of the machine.
struct finished {
  std::optional<errc> failure;  ///< nothing: success
  std::string reason;
};
using supervisor_action = std::variant<send, persist, drop_link, report, step_done, finished>;

// -- status ---------------------------------------------------------------------------------------

enum class job_state : std::uint8_t {
  gathering,  ///< the first nodes are awaited
  adopting,   ///< after a restart: is the view of the ledger still training?
  halting,    ///< a loss: standings are awaited
  holding,    ///< too few nodes: those that are there keep their state
  preparing,  ///< a new view gets ready
  running,
  draining,   ///< the view ends with its next step, for a planned change
  finishing,  ///< all steps are done, the last checkpoint is awaited
  done,
};
std::string_view to_string(job_state state);

struct node_status {
  sender who;
  endpoint at;
  std::uint64_t process = 0;
  bool alive = false;
  bool leaving = false;
  bool suspect = false;
  bool stuck = false;
  activity doing = activity::idle;
  view_id view;
  step_id step;                   ///< round in progress, as last heard
  std::uint32_t micro_batch = 0;  ///< actions of it that are done
  std::uint64_t resident_bytes = 0;
};

/// A snapshot for `shoal status`.
struct supervisor_status {
  job_state state = job_state::gathering;
  term_id term;
  view_id view;     ///< running or being prepared
  layout shape;     ///< of it
  step_id step;     ///< newest decided
  double loss = 0;  ///< of it
  std::uint32_t morphs = 0;
  double link_bytes_per_s = 0;     ///< that the next plan counts on; 0: costs nothing
  nanoseconds link_latency{};      ///< likewise
  std::vector<node_status> nodes;  ///< in order of id
  std::vector<step_id> checkpoints;
  std::string reason;  ///< why the layout is as it is, or why the job holds
};

}  // namespace shoal::core
