#pragma once
// Starts, signals and reaps child processes of this one: the local nodes of `shoal run`.
//
// A child dies with its parent (PR_SET_PDEATHSIG), so that not even a SIGKILL of `shoal run` leaves
// a node behind.

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.hpp"

namespace shoal::app {

/// Thread-safe. Destruction kills what still runs and waits for it.
class process_host {
public:
  /// How a child ended: its exit code, or 128 + the signal. Called from the host's thread.
  using on_exit = std::function<void(pid_t, int)>;

  explicit process_host(on_exit listener);
  ~process_host();
  process_host(const process_host&) = delete;
  process_host& operator=(const process_host&) = delete;

  /// Runs `program` with `arguments`. `errc::io` when it cannot be started.
  result<pid_t> start(const std::string& program, const std::vector<std::string>& arguments);

  /// Sends a signal; false when the child is no longer there.
  bool signal(pid_t child, int number);

  /// Live children, oldest first.
  std::vector<pid_t> children() const;

  /// Asks all to go (SIGTERM when `gently`), kills those that are left after `grace`, reaps all.
  void stop_all(bool gently, std::chrono::milliseconds grace);

private:
  void reap_loop();

  on_exit listener_;
  mutable std::mutex mutex_;
  std::map<pid_t, int> children_;  // pid -> pidfd, in order of start as pids go
  std::vector<pid_t> order_;
  std::atomic<bool> closing_ = false;
  int wake_fd_ = -1;
  std::thread reaper_;
};

}  // namespace shoal::app
