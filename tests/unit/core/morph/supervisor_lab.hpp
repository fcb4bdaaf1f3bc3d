#pragma once
// A supervisor's machine with nodes that are played by hand.

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "core/morph/supervisor_machine.hpp"

namespace shoal::core::test {

/// One replica as deep as there are nodes, at most three blocks; too few below nodes_min.
inline result<plan_result> deep(const plan_profile&, const std::vector<plan_node>& nodes,
                                const layout&, const job_options& job) {
  if (nodes.size() < job.parallelism.nodes_min) return error{errc::too_few_nodes, "too few"};
  plan_result made;
  replica chain{{}, {0, job.training.micro_batches}};
  auto depth = std::min<std::uint32_t>(3, static_cast<std::uint32_t>(nodes.size()));
  for (std::uint32_t i = 0; i < depth; ++i)
    chain.stages.push_back({nodes[i].node, {i, i + 1 == depth ? 3 : i + 1}});
  made.shape.replicas.push_back(chain);
  made.reason = "deep";
  return made;
}

/// A supervisor and nodes played by hand. Node n speaks through link n, with pid 100 + n.
struct supervisor_lab {
  job_options job = [] {
    job_options j;
    j.training.steps = 5;
    j.training.micro_batches = 4;
    j.nodes.local = 2;
    j.timeouts.failure = 1s;
    j.timeouts.gather = 50ms;
    j.timeouts.answer = 2s;
    j.timeouts.prepare = 10s;
    j.timeouts.orphan = 30s;
    return j;
  }();
  planner plan = deep;
  ledger_state ledger;
  std::vector<step_id> found;
  std::optional<supervisor_machine> s;
  time_point now{100s};
  std::vector<supervisor_action> seen;  // of the last call or pass

  void start() {
    supervisor_options o;
    o.job = job;
    o.job_text = "text";
    o.job_digest = 9;
    o.profile.blocks.resize(3);
    o.ledger = ledger;
    o.plan = plan;
    s.emplace(std::move(o));
    step(checkpoints_found{found});
  }
  void take(std::vector<supervisor_action> actions) {
    for (auto& a : actions)
      if (auto p = std::get_if<persist>(&a)) ledger = p->what;
    seen.insert(seen.end(), actions.begin(), actions.end());
  }
  void step(const supervisor_event& e) {
    seen.clear();
    take(s->step(now, e));
  }
  void say(std::uint64_t link, node_message m) { step(heard{{link}, std::move(m)}); }
  /// Time passes, while `calling` nodes send heartbeats.
  void pass(nanoseconds time, std::vector<std::uint64_t> calling = {}) {
    seen.clear();
    for (auto end = now + time; now < end;) {
      now += 25ms;
      for (auto n : calling) {
        heartbeat b;
        b.from = {{n}, {1}};
        b.view = s->status().view;
        b.doing = activity::training;
        take(s->step(now, heard{{n}, b}));
      }
      take(s->tick(now));
    }
  }
  hello knock(std::uint64_t n, standing where = {}) {
    hello h;
    h.job = 9;
    h.at = {"h", static_cast<std::uint16_t>(n), 0};
    h.process = 100 + n;
    h.now = std::move(where);
    return h;
  }
  /// Says hello, and that its engine is there.
  void join(std::uint64_t n) {
    say(n, knock(n));
    heartbeat b;
    b.from = {{n}, {1}};
    take(s->step(now, heard{{n}, b}));
  }
  standing stands(std::uint64_t n, std::uint64_t step = 0, std::vector<block_index> blocks = {}) {
    standing st;
    st.from = {{n}, {1}};
    st.view = s->status().view;
    st.doing = blocks.empty() ? activity::idle : activity::holding;
    st.applied = {step};
    for (auto b : blocks) st.blocks.push_back({b, 1000 * step + b});
    return st;
  }
  void is_ready(std::uint64_t n) {
    ready r;
    r.from = {{n}, {1}};
    r.view = s->status().view;
    say(n, r);
  }
  decided word(std::uint64_t lead, std::uint64_t step, decision what = decision::apply,
               bool last = false) {
    decided d;
    d.from = {{lead}, {1}};
    d.what.view = s->status().view;
    d.what.step = {step};
    d.what.what = what;
    d.what.last_of_view = last;
    return d;
  }
  /// Nodes 1 and 2 train view 2: 1:[0-0] 2:[1-2].
  void run_two() {
    start();
    join(1);
    join(2);
    say(1, stands(1));
    say(2, stands(2));
    pass(75ms, {1, 2});
    is_ready(1);
    is_ready(2);
  }
  job_state state() const { return s->status().state; }

  template <class T>
  std::vector<T> acts() const {
    std::vector<T> all;
    for (auto& a : seen)
      if (auto t = std::get_if<T>(&a)) all.push_back(*t);
    return all;
  }
  /// Messages of one kind, by link.
  template <class T>
  std::map<std::uint64_t, T> sent() const {
    std::map<std::uint64_t, T> all;
    for (auto& a : acts<send>())
      if (auto t = std::get_if<T>(&a.what)) all.emplace(a.to.value, *t);
    return all;
  }
};

}  // namespace shoal::core::test
