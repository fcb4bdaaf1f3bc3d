#pragma once
// What the program gives to the actors of a process, as plain functions and one interface: no CAF
// type is in it, so that src/app can wire real parts without knowing which actor library this is.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/job.hpp"
#include "core/messages.hpp"
#include "core/morph/member_machine.hpp"
#include "core/morph/supervisor_io.hpp"
#include "core/ports.hpp"

namespace shoal::actors {

// -- supervisor -----------------------------------------------------------------------------------

/// Where the supervisor's actions go. All are called from the SUPERVISOR's thread, one at a time,
/// in the order of the machine's actions. All but `log` must be set.
struct supervisor_ports {
  /// Durable on return; the job is stopped with the error when it cannot be made so. May block.
  std::function<result<void>(const core::ledger_state&)> persist;
  std::function<void(const core::report&)> on_report;
  std::function<void(const core::step_done&)> on_step;
  /// The last call of all but `render`. Do not destroy the host from in here.
  std::function<void(const core::finished&)> on_finished;
  /// What `shoal status` prints: for people, or as JSON.
  std::function<std::string(const core::supervisor_status&, bool json)> render;
  /// A line for the log; empty: nowhere.
  std::function<void(const std::string&)> log;
};

// -- node -----------------------------------------------------------------------------------------

/// What a node makes of a job: the stage runner and the writer of checkpoints. Destruction ends
/// their threads, and no callback comes after it.
class engine {
public:
  virtual ~engine() = default;
  /// Lives as long as the engine. Called from one actor at a time.
  virtual core::stage_runner& runner() = 0;
  /// Of the model.
  virtual std::uint32_t block_count() const = 0;
  /// Writes the blocks of a snapshot on a thread of its own; calls `done` exactly once, from any
  /// thread. `from` of the answer is filled in by the node.
  virtual void write(core::runner_snapshot what, std::function<void(core::parts_written)> done) = 0;
  /// All parts of `step` are durable, in chain order: makes the checkpoint exist, and deletes what
  /// is no longer to be kept, on a thread of its own. Calls `done` exactly once, from any thread.
  virtual void complete(step_id step, std::vector<core::checkpoint_part> parts,
                        std::function<void(result<void>)> done) = 0;
};

/// Takes the runner's events, from any thread; returns at once.
using runner_sink = std::function<void(core::runner_event)>;

struct node_ports {
  /// Reads the job's text; quick. Called at the first welcome.
  std::function<result<core::job_options>(const core::welcome&)> read_job;
  /// Makes the engine; may take long, so it is called from a thread of its own, once. Heartbeats
  /// go on meanwhile, and commands wait. An error ends the node with it.
  std::function<result<std::shared_ptr<engine>>(const core::welcome&, const core::job_options&,
                                                runner_sink)>
    make_engine;
  /// Of this process. Empty: 0 is told.
  std::function<std::uint64_t()> resident_bytes;
  /// A line for the log; from any thread. Empty: nowhere.
  std::function<void(const std::string&)> log;
};

}  // namespace shoal::actors
