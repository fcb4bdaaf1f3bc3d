#include "sim/cluster.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "sim/faults.hpp"
#include "sim/sim_node.hpp"
#include "sim/sim_supervisor.hpp"
#include "sim/world.hpp"

namespace shoal::sim {

namespace {

constexpr std::uint64_t events_max = 3'000'000;
constexpr auto settle_max = 300s;  // of virtual time, from the last fault to the end

/// The job's end must be a good one.
void judge_end(world& w) {
  if (!w.check.ok()) return;
  auto last = w.checkpoints.steps();
  if (last.empty() || last.back().value != w.job.training.steps)
    w.check.fail("the job ended without its last checkpoint");
}

std::string where_it_hangs(world& w) {
  auto s = w.supervisor->status();
  std::string text = "the faults ended, the job did not: supervisor is " +
                     std::string(core::to_string(s.state)) + ", step " +
                     std::to_string(s.step.value) + " of " + std::to_string(w.job.training.steps) +
                     ", " + s.reason + "; nodes";
  for (auto& n : s.nodes)
    text += " " + std::to_string(n.who.node.value) + (n.alive ? ":alive" : ":lost") +
            (n.leaving ? ",leaving" : "") + "/" + std::to_string(static_cast<int>(n.doing));
  return text;
}

}  // namespace

cluster_outcome run_cluster(const cluster_options& options, std::ostream* log) {
  world w(options, log);
  w.start_supervisor();
  for (std::uint32_t i = 0; i < w.draw.nodes_first; ++i) w.spawn_node();
  bad_luck luck(w);
  luck.begin();
  std::optional<time_point> deadline;
  while (w.check.ok() && !w.finished) {
    if (w.calm && !deadline) deadline = w.loop.now() + settle_max;
    if (w.loop.done() > events_max) w.check.fail("too much happens without an end");
    if (!w.loop.run_next(deadline.value_or(w.loop.now() + 1h))) w.check.fail(where_it_hangs(w));
  }
  // What was under way when the job ended must not do harm either.
  for (auto end = w.loop.now() + 1s; w.check.ok() && w.loop.run_next(end);) {
  }
  judge_end(w);
  auto outcome = w.outcome;
  outcome.ok = w.check.ok();
  outcome.events = w.loop.done();
  outcome.virtual_time = w.loop.now().time_since_epoch();
  if (!outcome.ok)
    outcome.violation = "seed " + std::to_string(options.seed) + " at " +
                        shoal::text_of(outcome.virtual_time) + ": " + w.check.violation();
  w.comment(outcome.ok ? "ok" : outcome.violation);
  return outcome;
}

}  // namespace shoal::sim
