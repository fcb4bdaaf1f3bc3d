#pragma once
// Decides from heartbeats alone which nodes are dead, and which live but get nowhere.
//
// Picture a night watchman who hears each guard call "all's well, I am at gate 7". A guard who
// misses his call is suspect; one silent for the whole timeout is dead. One who calls but stands
// at gate 7 all night is stuck. When the watchman himself nodded off, the time that he slept
// through accuses nobody.
//
//   alive <--heard--> suspect (silent for longer than is usual)     dead (silent > failure): final
//   alive <--moved--> stuck (calls, trains, but did not move for `progress`, or long for this node)
//
// Pure: time comes in as an argument. Rejected: phi-accrual alone, since its threshold in units of
// probability gives users no bound in seconds; its adaptivity survives in the usual gaps.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/job.hpp"
#include "core/messages.hpp"
#include "core/time.hpp"

namespace shoal::core {

/// How often nodes call and machines tick: an eighth of timeouts.failure, within 10 ms and 1 s.
nanoseconds heartbeat_interval(const timeout_options& timeouts);

enum class health : std::uint8_t { alive, suspect, stuck, dead };

/// A node's health changed. `reason` is a sentence with the numbers behind the decision.
struct health_change {
  sender who;
  health now_is = health::alive;
  std::string reason;
};

/// Watches any number of nodes by their heartbeats. Not thread-safe: one owner.
class failure_detector {
public:
  struct options {
    nanoseconds failure = 2s;      ///< silence after which a node is dead
    nanoseconds interval = 250ms;  ///< expected between two heartbeats, and between two ticks
    nanoseconds progress = 10s;    ///< training without moving for less is never `stuck`
    std::size_t node_count_max = core::node_count_max;
  };

  explicit failure_detector(options opts);

  /// Starts to watch `who`, alive as of `now`; another life of the node is forgotten. False, and
  /// nothing changes, beyond `node_count_max`.
  [[nodiscard]] bool watch(sender who, time_point now);

  /// Stops watching; unknown nodes are ignored.
  void forget(node_id node);

  /// A heartbeat arrived. Ignored when its life is not the one watched, or dead.
  void heard(const heartbeat& beat, time_point now);

  /// Any other word of the node: shows that it lives, says nothing of progress.
  void heard(sender who, time_point now);

  /// When the node was last heard; the epoch when it is not watched.
  time_point last_heard(node_id node) const;

  /// Judges everyone anew; to be called about every `interval`. Returns what changed since the last
  /// tick, in order of node. A tick that comes late by more than an interval shows that the caller
  /// was stalled, and everyone is granted the time lost.
  [[nodiscard]] std::vector<health_change> tick(time_point now);

private:
  struct watched {
    sender who;
    time_point last_heard;
    time_point last_moved;
    nanoseconds usual_gap{};   // moving average of the time between heartbeats
    nanoseconds usual_move{};  // likewise between changes of the place
    heartbeat place;           // newest one
    health state = health::alive;
  };

  void forgive(time_point now);
  health judge(const watched& w, time_point now, std::string& reason) const;

  options opts_;
  std::map<node_id, watched> nodes_;
  time_point last_tick_{};
};

}  // namespace shoal::core
