#pragma once
// The actors as the program sees them: a supervisor to host, a node to host, a supervisor to ask.
// No type of the actor library in here.
//
// The control connection knows no passwords: whoever reaches the port can command, and 32 forged
// bytes can make the process reserve 2 GB (CAF 0.17.6). So a host listens only at the address that
// it is given, never at all of them; see README.md.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/checkpoint/manifest.hpp"
#include "core/job.hpp"
#include "core/messages.hpp"
#include "core/morph/supervisor_machine.hpp"
#include "core/ports.hpp"

namespace shoal::actors {

/// What the SUPERVISOR needs from the program. Called one at a time, from a thread of the actors;
/// each must return soon, though `persist` may wait for its disk. None may destroy the host.
struct supervisor_ports {
  /// Durable on return. When it fails, all nodes are told to stop and the job ends with its error.
  std::function<result<void>(const core::ledger_state&)> persist;
  std::function<void(const core::report&, const core::supervisor_status&)> reported;
  std::function<void(const core::step_done&)> stepped;
  std::function<void(const core::finished&)> finished;                  ///< called once
  std::function<std::string(const core::supervisor_status&)> describe;  ///< JSON for `shoal status`
};

/// How long the destruction of a host takes at most. What has not ended by then is left behind for
/// the process to end.
constexpr std::chrono::milliseconds stop_time_max{2000};

/// A supervisor with its listening port. Thread-safe but for destruction.
class supervisor_host {
public:
  /// Listens on host:port (0: any free one). `checkpoints` are the usable ones.
  /// `errc::port_in_use`, `errc::config` (no address of this machine; a job text that is too long
  /// to be sent), `errc::no_permission`.
  static result<std::unique_ptr<supervisor_host>> start(const std::string& host, std::uint16_t port,
                                                        core::supervisor_options options,
                                                        std::vector<step_id> checkpoints,
                                                        supervisor_ports ports);
  /// Gives the nodes half a second to hang up. No port is called after it.
  ~supervisor_host();

  std::uint16_t port() const;
  /// An event from outside the actors: a process that ended, a stop.
  void tell(core::supervisor_event event);

private:
  struct impl;
  explicit supervisor_host(std::unique_ptr<impl> parts);
  std::unique_ptr<impl> impl_;
};

/// What trains and writes on a node, once the job is known. Owned by the program, which keeps it
/// alive until the node_host is gone.
struct node_engine {
  core::job_options job;
  core::stage_runner* runner = nullptr;
  std::uint32_t block_count = 0;  ///< of the model
  /// Writes on a thread of its own; `done` comes once, from any thread.
  std::function<void(core::runner_snapshot, std::function<void(core::parts_written)> done)> write;
  /// Makes a checkpoint exist; likewise.
  std::function<void(step_id, std::vector<core::checkpoint_part>,
                     std::function<void(result<void>)> done)>
    complete;
};

struct node_host_options {
  std::string supervisor_host;
  std::uint16_t supervisor_port = 0;
  std::string host = "127.0.0.1";  ///< to listen on, and to tell others
  std::uint16_t port = 0;          ///< 0: any free one; filled in when it is known
  std::uint16_t tensor_port = 0;   ///< that the engine's plane listens on
  std::string build;
  std::uint64_t memory_bytes = 0;
  std::chrono::nanoseconds join_timeout = std::chrono::seconds(30);  ///< until the first welcome
  /// Makes the engine from the job's text and digest; may take long: called once, from a thread of
  /// its own, while heartbeats go on. `sink` takes the runner's events from any thread, and may be
  /// called even after the node_host is gone.
  std::function<result<node_engine>(const std::string& job_text, std::uint64_t job_digest,
                                    std::function<void(core::runner_event)> sink)>
    make_engine;
  /// Sentences for the log. May be empty.
  std::function<void(const std::string&)> log;
};

/// How a node ended.
struct node_end {
  std::optional<errc> failure;
  std::string reason;
};

/// One node. Thread-safe but for destruction.
class node_host {
public:
  /// Listens and begins to knock. `errc::port_in_use`, `errc::config`, `errc::no_permission`.
  static result<std::unique_ptr<node_host>> start(node_host_options options);
  /// Ends at once, without a word to anyone. Afterwards the engine may go.
  ~node_host();

  /// The control port that it listens at.
  std::uint16_t port() const;
  /// Asks the job to do without this node; it ends when its blocks are in other hands.
  void leave(const std::string& reason);
  /// Waits until the node ends; nothing at the deadline.
  std::optional<node_end> wait(std::chrono::milliseconds deadline);

private:
  struct impl;
  explicit node_host(std::unique_ptr<impl> parts);
  std::unique_ptr<impl> impl_;
};

/// Asks the supervisor at host:port: "status", or "leave" with a node. Returns within about
/// `deadline`. `errc::unreachable`, `errc::timeout`, `errc::protocol` (not a supervisor of ours),
/// `errc::refused`.
result<std::string> ask_supervisor(const std::string& host, std::uint16_t port,
                                   const std::string& what, node_id node,
                                   std::chrono::milliseconds deadline);

}  // namespace shoal::actors
