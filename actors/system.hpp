#pragma once
// The actors as the program sees them: a supervisor in this process, a node in this process, and a
// question to a supervisor elsewhere. No CAF type is in here.
//
//   supervisor_host --- SUPERVISOR, listening at host:port
//   node_host --------- NODE, listening at host:port, with STAGE, COORDINATOR, CHECKPOINT WRITER
//   ask_supervisor ---- a short-lived system that dials one
//
// The control connection has no authentication: whoever can connect can command, and a forged
// length of 32 bytes can make the process reserve 2 GB (CAF 0.17.6). So it listens only at the
// address that it is given, which by default is the loopback one. See README.md.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/ports.hpp"
#include "base/result.hpp"
#include "core/morph/member_machine.hpp"
#include "core/morph/supervisor_machine.hpp"

namespace shoal::actors {

/// How long `stop` and destruction of a host take at most.
constexpr std::chrono::milliseconds stop_time_max{2000};

struct supervisor_settings {
  core::supervisor_options machine;
  std::vector<step_id> checkpoints;  ///< usable ones, for core::checkpoints_found
  std::string host = "127.0.0.1";    ///< a literal address of this machine; never "any"
  std::uint16_t port = 0;            ///< 0: any free one
};

/// A running supervisor. Thread-safe, except that `stop` and destruction come last.
class supervisor_host {
public:
  /// `errc::port_in_use` names host:port; `errc::config` when the host is no address of this
  /// machine or the job's text is too long to be sent; `errc::no_permission`.
  static result<std::unique_ptr<supervisor_host>> start(supervisor_settings settings,
                                                        supervisor_ports ports);
  ~supervisor_host();

  /// The port that it listens at.
  std::uint16_t port() const;

  /// core::node_exited, core::stop_asked, core::leave_asked. Returns at once.
  void tell(core::supervisor_event event);

  /// Waits a moment for the nodes to hang up, then ends. When it returns, no port is called any
  /// more. `errc::timeout`: something hangs; it was given up, and the program should end with
  /// std::_Exit. Also called by the destructor.
  result<void> stop();

private:
  class impl;
  explicit supervisor_host(std::unique_ptr<impl> inside);
  std::unique_ptr<impl> impl_;
};

struct node_settings {
  core::member_options member;  ///< `at.control_port` 0: any free one; `at.tensor_port` as it is
  std::string supervisor_host;  ///< a literal address
  std::uint16_t supervisor_port = 0;
};

/// A running node. Thread-safe, except that `stop` and destruction come last.
class node_host {
public:
  /// Starts to knock at the supervisor, and goes on knocking until it is let in. Errors as for
  /// supervisor_host::start.
  static result<std::unique_ptr<node_host>> start(node_settings settings, node_ports ports);
  ~node_host();

  /// The control port that it listens at.
  std::uint16_t port() const;

  /// Asks to leave: blocks are handed over first. Async-signal-safe; acted on within a heartbeat.
  void leave() noexcept;

  /// Waits until the node has ended, or for so long. What it ended with; nothing: it still runs.
  std::optional<core::exit_node> wait(std::chrono::milliseconds at_most);

  /// Ends at once, without a word to anyone; destroys the engine. As supervisor_host::stop.
  result<void> stop();

private:
  class impl;
  explicit node_host(std::unique_ptr<impl> inside);
  std::unique_ptr<impl> impl_;
};

/// A question of the command line to a supervisor.
struct question {
  enum class kind : std::uint8_t { status, status_as_json, leave };
  kind what = kind::status;
  node_id node;  ///< leave: who
};

/// The answer, as text to be printed. `errc::unreachable` when nobody answers there,
/// `errc::timeout` when somebody does but not within `deadline`, `errc::protocol` when it is not a
/// supervisor of our protocol, `errc::refused` when the answer is no.
result<std::string> ask_supervisor(const std::string& host, std::uint16_t port,
                                   const question& what, std::chrono::milliseconds deadline);

}  // namespace shoal::actors
