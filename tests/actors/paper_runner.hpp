#pragma once
// A stage runner that trains nothing: its weights are the number of the step. It keeps the promises
// of core/ports.hpp, so that whole jobs run through the actors.

#include <functional>
#include <map>
#include <mutex>

#include "core/checkpoint/manifest.hpp"
#include "core/job.hpp"
#include "core/ports.hpp"

namespace shoal::actors {

/// What a block's weights hash to after a step, whoever holds it.
inline std::uint64_t paper_digest(block_index block, step_id step) {
  return step.value * 1000 + block + 1;
}

class paper_runner : public core::stage_runner {
public:
  paper_runner(core::job_options job, std::function<void(core::runner_event)> sink)
    : job_(std::move(job)), sink_(std::move(sink)) {}

  void get_ready(core::prepare plan, core::sender self) override {
    std::lock_guard lock(mutex_);
    plan_ = std::move(plan);
    placed_ = core::find_place(plan_.shape, self.node, at_);
    applied_ = plan_.step;
    last_ = plan_.roll_forward ? plan_.roll_forward : last_;
    running_ = reported_ = false;
    sink_(core::runner_prepared{plan_.view, held()});
  }
  void begin(view_id) override {
    std::lock_guard lock(mutex_);
    if (!placed_) return;
    running_ = true;
    report();
  }
  void decide(core::verdict word) override {
    std::lock_guard lock(mutex_);
    if (!running_ || word.view != plan_.view || word.step != applied_.next()) return;
    reported_ = false;
    last_ = word;
    if (word.what == core::decision::apply) {
      applied_ = word.step;
      if (core::checkpoints_after(job_, applied_.value)) snapshot();
    }
    if (!word.last_of_view) return report();
    running_ = false;
    sink_(core::runner_halted{standing()});
  }
  void halt() override {
    std::lock_guard lock(mutex_);
    running_ = false;
    sink_(core::runner_halted{standing()});
  }
  core::runner_progress progress() const override {
    std::lock_guard lock(mutex_);
    return {plan_.view, applied_.next(), 0};
  }

private:
  core::block_runs blocks() const {
    return placed_ ? plan_.shape.replicas[at_.replica].stages[at_.stage].blocks
                   : core::block_runs{};
  }
  std::vector<core::held_block> held() const {
    std::vector<core::held_block> all;
    for (auto b : blocks().all()) all.push_back({b, paper_digest(b, applied_)});
    return all;
  }
  core::standing standing() const {
    core::standing now;
    now.applied = applied_;
    now.has_sums = reported_;
    now.last_verdict = last_;
    now.blocks = held();
    return now;
  }
  void report() {
    auto& replica = plan_.shape.replicas[at_.replica];
    core::stage_report r;
    r.view = plan_.view;
    r.step = applied_.next();
    r.at = at_;
    for (auto& b : held()) r.blocks.push_back({b.block, b.digest, 1.0, 10, 20});
    if (at_.stage + 1 == replica.stages.size() && r.step.value <= job_.training.steps)
      for (auto m = replica.micro_batches.begin; m < replica.micro_batches.end; ++m)
        r.losses.push_back({m, 1.0 / static_cast<double>(r.step.value)});
    reported_ = true;
    sink_(core::runner_reported{std::move(r)});
  }
  void snapshot() {
    core::runner_snapshot shot{plan_.view, applied_, {}};
    auto replicas = static_cast<std::uint32_t>(plan_.shape.replicas.size());
    for (auto& b : held())
      if (core::writer_of(b.block, replicas) == at_.replica)
        shot.blocks.push_back({b.block, b.digest, {}});
    sink_(std::move(shot));
  }

  const core::job_options job_;
  const std::function<void(core::runner_event)> sink_;
  mutable std::mutex mutex_;
  core::prepare plan_;
  core::place at_;
  bool placed_ = false, running_ = false, reported_ = false;
  step_id applied_;
  std::optional<core::verdict> last_;
};

}  // namespace shoal::actors
