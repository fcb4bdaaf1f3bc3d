#pragma once
// Virtual time, processes that crash and freeze, and the wires between them.
//
// A wire delivers in order, after a delay drawn from the seed. A cut wire keeps what is sent until
// it heals, as TCP does; only the end of a connection loses messages, and both ends learn of it.
// One thread, no clock: the same seed gives the same run.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "base/rng.hpp"
#include "core/job.hpp"
#include "core/time.hpp"

namespace shoal::sim {

using core::nanoseconds;
using core::time_point;
using namespace std::chrono_literals;
using task = std::function<void()>;

/// What happens next, in order of time and then of when it was asked for.
class event_loop {
public:
  time_point now() const { return now_; }
  void after(nanoseconds delay, task what);
  /// Runs the next task if it is due before `until`; else moves to `until` and returns false.
  bool run_next(time_point until);
  std::uint64_t done() const { return done_; }

private:
  struct entry {
    time_point at;
    std::uint64_t order;
    mutable task what;
    bool operator<(const entry& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  std::priority_queue<entry> entries_;
  time_point now_{1s};  // not the epoch, which means "never" to some
  std::uint64_t asked_ = 0;
  std::uint64_t done_ = 0;
};

/// Something that runs until it crashes, and can be stopped for a while.
class process {
public:
  explicit process(event_loop& loop) : loop_(loop) {}
  virtual ~process() = default;
  process(const process&) = delete;
  process& operator=(const process&) = delete;

  bool alive() const { return alive_; }
  bool frozen() const { return frozen_; }
  /// Runs `what` now: not at all when dead, after the thaw when frozen.
  void run(task what);
  void later(nanoseconds delay, task what);
  void freeze() { frozen_ = true; }
  void thaw();

protected:
  void die() { alive_ = false; }
  event_loop& loop() { return loop_; }

private:
  event_loop& loop_;
  std::deque<task> backlog_;
  bool alive_ = true;
  bool frozen_ = false;
};

/// Places are numbers: 0 is the supervisor's machine, nodes count from 1.
class network {
public:
  struct options {
    nanoseconds delay_min = 100us;
    nanoseconds delay_max = 2ms;
    double late_share = 0.02;  ///< messages that take up to `late_max` instead
    nanoseconds late_max = 100ms;
  };
  network(event_loop& loop, rng& random, options opts)
    : loop_(loop), random_(random), opts_(opts) {}

  /// Calls `deliver` in due time, after all that was sent from `from` to `to` before.
  void send(int from, int to, task deliver, nanoseconds work = 0ns);
  void cut(int a, int b) { cut_.insert(std::minmax(a, b)); }
  void heal(int a, int b);
  bool is_cut(int a, int b) const { return cut_.contains(std::minmax(a, b)); }
  std::set<std::pair<int, int>> cuts() const { return cut_; }

private:
  struct wire {
    time_point last{};
    std::deque<task> held;
  };
  void pass(wire& w, task deliver, nanoseconds work);
  nanoseconds delay();

  event_loop& loop_;
  rng& random_;
  options opts_;
  std::map<std::pair<int, int>, wire> wires_;
  std::set<std::pair<int, int>> cut_;
};

}  // namespace shoal::sim
