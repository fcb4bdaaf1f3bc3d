// Checks schedules as if someone else had written them, which one day someone will.
#include <algorithm>
#include <string>

#include "core/schedule/schedule.hpp"

namespace shoal::core {

namespace {

char letter(action_kind kind) {
  switch (kind) {
    case action_kind::validate:
      return 'V';
    case action_kind::forward:
      return 'F';
    case action_kind::recompute:
      return 'R';
    case action_kind::backward:
      return 'B';
  }
  return '?';
}

std::string text_of(stage_action action) {
  return letter(action.kind) + std::to_string(action.micro_batch);
}

error wrong(stage_index stage, stage_action action, const std::string& what) {
  return {errc::config,
          "schedule, stage " + std::to_string(stage) + ", " + text_of(action) + ": " + what + "."};
}

/// What has become of the micro-batches of one range, by number.
struct passes {
  index_range range;
  std::vector<bool> done = std::vector<bool>(range.size(), false);

  bool mark(micro_batch_index g) {
    if (done[g - range.begin]) return false;
    return done[g - range.begin] = true;
  }
  bool has(micro_batch_index g) const { return done[g - range.begin]; }
  std::uint32_t missing() const {
    return range.begin +
           static_cast<std::uint32_t>(std::find(done.begin(), done.end(), false) - done.begin());
  }
};

/// The rules for one stage by itself.
result<void> check_stage(stage_index s, const std::vector<stage_action>& order,
                         const schedule_options& options) {
  passes validated{options.validation_micro_batches};
  passes forwarded{options.micro_batches}, recomputed{options.micro_batches},
    finished{options.micro_batches};
  for (auto action : order) {
    auto g = action.micro_batch;
    auto& pass = action.kind == action_kind::validate    ? validated
                 : action.kind == action_kind::forward   ? forwarded
                 : action.kind == action_kind::recompute ? recomputed
                                                         : finished;
    if (!pass.range.contains(g)) return wrong(s, action, "this micro-batch is not the replica's");
    if (!pass.mark(g)) return wrong(s, action, "it comes twice");
    bool needs_forward =
      action.kind == action_kind::recompute || action.kind == action_kind::backward;
    if (needs_forward && !forwarded.has(g))
      return wrong(s, action, "its forward pass has not come yet");
    if (action.kind == action_kind::recompute && finished.has(g))
      return wrong(s, action, "its backward pass is over");
    if (action.kind == action_kind::backward && g > finished.range.begin && !finished.has(g - 1))
      return wrong(s, action, "backward passes must run in order of micro-batch");
  }
  auto complete = [&](action_kind kind, const passes& pass) -> result<void> {
    auto g = pass.missing();
    return g == pass.range.end ? result<void>{} : wrong(s, {kind, g}, "it is missing");
  };
  TRY_VOID(complete(action_kind::validate, validated));
  TRY_VOID(complete(action_kind::forward, forwarded));
  return complete(action_kind::backward, finished);
}

/// Runs all stages as far as data allows. Each stage's order is a chain and each action waits for
/// at most one of another stage, so whatever can run once can run in any order, and what is left
/// lies on or behind a cycle.
class dry_run {
public:
  dry_run(const schedule& plan, const schedule_options& options)
    : plan_(plan),
      next_(plan.stages.size(), 0),
      validated_(plan.stages.size(), passes{options.validation_micro_batches}),
      forwarded_(plan.stages.size(), passes{options.micro_batches}),
      finished_(plan.stages.size(), passes{options.micro_batches}) {}

  result<void> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (stage_index s = 0; s < plan_.stages.size(); ++s)
        while (next_[s] < plan_.stages[s].size() && ready(s, plan_.stages[s][next_[s]])) {
          note(s, plan_.stages[s][next_[s]++]);
          moved = true;
        }
    }
    for (stage_index s = 0; s < plan_.stages.size(); ++s)
      if (next_[s] < plan_.stages[s].size()) {
        auto stuck = plan_.stages[s][next_[s]];
        auto giver = stuck.kind == action_kind::backward ? s + 1 : s - 1;
        return wrong(s, stuck,
                     "deadlock: it waits for stage " + std::to_string(giver) +
                       ", which stands at " + text_of(plan_.stages[giver][next_[giver]]));
      }
    return {};
  }

private:
  bool ready(stage_index s, stage_action action) const {
    auto g = action.micro_batch;
    switch (action.kind) {
      case action_kind::validate:
        return s == 0 || validated_[s - 1].has(g);
      case action_kind::forward:
        return s == 0 || forwarded_[s - 1].has(g);
      case action_kind::recompute:
        return true;
      case action_kind::backward:
        return s + 1 == plan_.stages.size() || finished_[s + 1].has(g);
    }
    return false;
  }

  void note(stage_index s, stage_action action) {
    if (action.kind == action_kind::validate) validated_[s].mark(action.micro_batch);
    if (action.kind == action_kind::forward) forwarded_[s].mark(action.micro_batch);
    if (action.kind == action_kind::backward) finished_[s].mark(action.micro_batch);
  }

  const schedule& plan_;
  std::vector<std::size_t> next_;
  std::vector<passes> validated_, forwarded_, finished_;
};

}  // namespace

result<void> validate(const schedule& plan, const schedule_options& options) {
  if (plan.stages.size() != options.stage_count)
    return {errc::config, "the schedule has " + std::to_string(plan.stages.size()) +
                            " stages, the replica " + std::to_string(options.stage_count) + "."};
  for (stage_index s = 0; s < plan.stages.size(); ++s)
    TRY_VOID(check_stage(s, plan.stages[s], options));
  return dry_run(plan, options).run();
}

std::uint32_t stash_peak(const std::vector<stage_action>& stage) {
  std::uint32_t now = 0, peak = 0;
  for (auto action : stage) {
    if (action.kind == action_kind::forward) peak = std::max(peak, ++now);
    if (action.kind == action_kind::backward && now > 0) --now;
  }
  return peak;
}

std::string text_of(const std::vector<stage_action>& stage) {
  std::string text;
  for (auto action : stage) text += (text.empty() ? "" : " ") + text_of(action);
  return text;
}

}  // namespace shoal::core
