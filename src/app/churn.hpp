#pragma once
// Decides which local node goes or comes next, and when. Pure: steps and time come in, signals and
// starts go out; the same seed and history give the same experiment.

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/rng.hpp"
#include "core/job.hpp"

namespace shoal::app {

/// One thing to do to the local nodes now.
struct churn_step {
  core::churn_action action = core::churn_action::kill;
  std::uint32_t count = 1;
  /// For kill and leave: which of the live nodes, as random words to be taken modulo their number.
  std::vector<std::uint64_t> choice;
};

/// Plays the job's [churn]: first come its listed events by step; then the random ones, each some
/// steps after the last, and one in four a few tens of milliseconds after it, so that it meets a
/// morph in progress.
class churn {
public:
  using time_point = std::chrono::steady_clock::time_point;

  explicit churn(const core::churn_options& options);

  /// What is due now that `step` is decided and `live` local nodes run. Call often.
  std::vector<churn_step> due(time_point now, std::uint64_t step, std::uint32_t live);
  /// When to call again although no step was decided; nothing: only after the next step.
  std::optional<time_point> wake_at() const { return random_at_; }
  /// Whether every event has happened.
  bool done() const;

private:
  churn_step pick(std::uint32_t live);
  void arm(time_point now, std::uint64_t step);

  core::churn_options options_;
  rng random_;
  std::size_t next_listed_ = 0;
  std::uint32_t random_left_;
  std::uint64_t random_step_ = 0;        // the next random event comes at this step
  std::optional<time_point> random_at_;  // or at this time, if set
};

}  // namespace shoal::app
