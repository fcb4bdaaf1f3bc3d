#include "core/membership/failure_detector.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/units.hpp"

namespace shoal::core {

nanoseconds heartbeat_interval(const timeout_options& timeouts) {
  return std::clamp<nanoseconds>(timeouts.failure / 8, 10ms, 1s);
}

namespace {

bool same_place(const heartbeat& a, const heartbeat& b) {
  return a.view == b.view && a.step == b.step && a.micro_batch == b.micro_batch &&
         a.doing == b.doing;
}

}  // namespace

failure_detector::failure_detector(options opts) : opts_(opts) {
  SHOAL_ASSERT(opts_.interval > 0ns);
  SHOAL_ASSERT(opts_.interval * 3 <= opts_.failure);
}

bool failure_detector::watch(sender who, time_point now) {
  if (!nodes_.contains(who.node) && nodes_.size() >= opts_.node_count_max) return false;
  nodes_[who.node] = {
    .who = who, .last_heard = now, .last_moved = now, .usual_gap = opts_.interval, .place = {}};
  return true;
}

void failure_detector::forget(node_id node) { nodes_.erase(node); }

void failure_detector::heard(sender who, time_point now) {
  auto found = nodes_.find(who.node);
  if (found == nodes_.end() || found->second.who != who) return;
  if (found->second.state != health::dead && now > found->second.last_heard)
    found->second.last_heard = now;
}

void failure_detector::heard(const heartbeat& beat, time_point now) {
  auto found = nodes_.find(beat.from.node);
  if (found == nodes_.end() || found->second.who != beat.from) return;
  auto& w = found->second;
  if (w.state == health::dead || now < w.last_heard) return;
  // An eighth of the news each time: slow enough to ride out one pause, as TCP does for its timer.
  w.usual_gap += (now - w.last_heard - w.usual_gap) / 8;
  w.last_heard = now;
  if (same_place(beat, w.place)) return;
  if (beat.doing == activity::training && w.place.doing == activity::training)
    w.usual_move += (now - w.last_moved - w.usual_move) / 8;
  w.last_moved = now;
  w.place = beat;
}

time_point failure_detector::last_heard(node_id node) const {
  auto found = nodes_.find(node);
  return found == nodes_.end() ? time_point{} : found->second.last_heard;
}

std::vector<health_change> failure_detector::tick(time_point now) {
  forgive(now);
  std::vector<health_change> changes;
  for (auto& [node, w] : nodes_) {
    if (w.state == health::dead) continue;
    std::string reason;
    auto judged = judge(w, now, reason);
    if (judged == w.state) continue;
    w.state = judged;
    changes.push_back({w.who, judged, std::move(reason)});
  }
  return changes;
}

health failure_detector::judge(const watched& w, time_point now, std::string& reason) const {
  auto silent = now - w.last_heard;
  if (silent > opts_.failure) {
    reason = "silent for " + shoal::text_of(silent) +
             ", over timeouts.failure = " + shoal::text_of(opts_.failure);
    return health::dead;
  }
  auto patience = std::clamp<nanoseconds>(3 * w.usual_gap, 2 * opts_.interval, opts_.failure);
  if (silent > patience) {
    reason = "silent for " + shoal::text_of(silent) + ", usually " + shoal::text_of(w.usual_gap);
    return health::suspect;
  }
  auto still = now - w.last_moved;
  if (w.place.doing == activity::training && still > std::max(opts_.progress, 20 * w.usual_move)) {
    reason = "lives, but has been at action " + std::to_string(w.place.micro_batch) + " of step " +
             std::to_string(w.place.step.value) + " for " + shoal::text_of(still) + ", usually " +
             shoal::text_of(w.usual_move) + " an action";
    return health::stuck;
  }
  reason = "heard from again";
  return health::alive;
}

/// Grants everyone the time that the caller was stalled, so that its own pause kills nobody.
void failure_detector::forgive(time_point now) {
  if (last_tick_ != time_point{}) {
    auto late = now - last_tick_ - opts_.interval;
    if (late > opts_.interval)
      for (auto& [node, w] : nodes_) {
        w.last_heard = std::min(now, w.last_heard + late);
        w.last_moved = std::min(now, w.last_moved + late);
      }
  }
  last_tick_ = now;
}

}  // namespace shoal::core
