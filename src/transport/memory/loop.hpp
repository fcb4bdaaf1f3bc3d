#pragma once
// A queue of things to do and a clock: the thread on which all planes of a memory hub live, or the
// same moved by hand.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "core/time.hpp"

namespace shoal::transport {

class loop {
public:
  /// With a thread of its own, the clock is the steady clock. Without, nothing happens but in
  /// `pump` and `advance`, and the clock stands still meanwhile.
  explicit loop(bool with_thread);
  ~loop();

  /// In order of posting. Thread-safe.
  void post(std::function<void()> task);
  /// Once `when` has come. Thread-safe.
  void at(core::time_point when, std::function<void()> task);
  core::time_point now() const;

  /// Without a thread: does all that is due, and what follows from it; returns how many tasks.
  std::size_t pump();
  /// Without a thread: moves the clock, then pumps.
  std::size_t advance(std::chrono::nanoseconds time);

private:
  bool take(std::function<void()>& task);  // with mutex_ held
  core::time_point now_locked() const;
  void run();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::multimap<core::time_point, std::function<void()>> timers_;
  core::time_point hand_moved_{};
  bool stopping_ = false;
  bool with_thread_;
  std::thread thread_;
};

}  // namespace shoal::transport
