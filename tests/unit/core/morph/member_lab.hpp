#pragma once
// A node's machine with a supervisor, a runner and peers that are played by hand.

#include <vector>

#include "core/morph/member_machine.hpp"

namespace shoal::core::test {

template <class T>
std::vector<T> all(const std::vector<member_action>& actions) {
  std::vector<T> found;
  for (auto& a : actions)
    if (auto t = std::get_if<T>(&a)) found.push_back(*t);
  return found;
}

/// What was told to the supervisor, of one kind.
template <class T>
std::vector<T> told(const std::vector<member_action>& actions) {
  std::vector<T> found;
  for (auto& a : all<to_supervisor>(actions))
    if (auto t = std::get_if<T>(&a.what)) found.push_back(*t);
  return found;
}

/// Node 1 of a job whose view 4 is 1:[0-0] -> 2:[1-1] and 3:[0-1]; with time moved by hand.
struct member_lab {
  member_machine node{[] {
    member_options o;
    o.build = "test";
    o.at = {"h", 1, 2};
    o.process = 77;
    o.timeouts.failure = 1s;
    o.timeouts.orphan = 10s;
    return o;
  }()};
  time_point now{100s};
  std::uint64_t id = 1;

  std::vector<member_action> step(const member_event& e) { return node.step(now, e); }
  std::vector<member_action> order(supervisor_message m) {
    return step(from_supervisor{std::move(m)});
  }
  std::vector<member_action> tick() { return node.tick(now, {}, 0); }
  /// Ticks through `time`; the supervisor answers heartbeats when it is `there`.
  std::vector<member_action> pass(nanoseconds time, bool there) {
    std::vector<member_action> seen;
    for (auto end = now + time; now < end;) {
      now += 100ms;
      auto actions = tick();
      for (auto& beat : told<heartbeat>(actions))
        if (there) order(lease{{1}, {4}, beat.at_ns});
      seen.insert(seen.end(), actions.begin(), actions.end());
    }
    return seen;
  }

  void join() {
    step(supervisor_found{});
    order(welcome{{1}, {{id}, {1}}, 9, "text"});
    node.use([] {
      timeout_options t;
      t.failure = 1s;
      t.orphan = 10s;
      return t;
    }());
  }
  prepare plan(std::uint64_t view = 4) {
    prepare p;
    p.term = {1};
    p.view = {view};
    p.step = {7};
    p.shape.replicas = {{{{{1}, {0, 1}}, {{2}, {1, 2}}}, {0, 2}}, {{{{3}, {0, 2}}}, {2, 4}}};
    for (std::uint64_t n : {1, 2, 3, 4})
      p.members.push_back({{{n}, {1}}, {"h", static_cast<std::uint16_t>(n), 0}});
    return p;
  }
  std::vector<member_action> prepared() {
    return step(from_runner{runner_prepared{{4}, {{0, 5}}}});
  }
  void train() {
    join();
    order(plan());
    prepared();
    order(commit{{1}, {4}});
  }
  std::vector<member_action> halted(step_id applied = {7}) {
    standing now_at;
    now_at.applied = applied;
    now_at.blocks = {{0, 5}};
    return step(from_runner{runner_halted{now_at}});
  }
};

inline verdict word_on(std::uint64_t view, std::uint64_t step) {
  verdict v;
  v.view = {view};
  v.step = {step};
  return v;
}

}  // namespace shoal::core::test
