#pragma once
// A schedule is data: for every stage of a replica, the order of its compute actions in one round.
//
//   1F1B, 3 stages, 4 micro-batches, classic warm-up (p-1-r):
//     stage 0:  F0 F1 F2 B0 F3 B1 B2 B3
//     stage 1:  F0 F1 B0 F2 B1 F3 B2 B3
//     stage 2:  F0 B0 F1 B1 F2 B2 F3 B3
//
// Validation passes come first: V0 V1 ... run forward only. Backward passes run in order of
// micro-batch in every schedule here, so that gradients can be added as they come.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "core/job.hpp"
#include "core/layout.hpp"

namespace shoal::core {

enum class action_kind : std::uint8_t {
  validate,   ///< V: forward without gradient or dropout
  forward,    ///< F
  recompute,  ///< R: the forward pass again from the stashed stage input
  backward,   ///< B
};

/// One thing a stage computes. Micro-batch numbers are those of the step (training) or of the
/// validation set.
struct stage_action {
  action_kind kind = action_kind::forward;
  micro_batch_index micro_batch = 0;
  friend auto operator<=>(const stage_action&, const stage_action&) = default;
};

/// The actions of every stage of one replica; `stages[s]` runs strictly in order.
struct schedule {
  std::vector<std::vector<stage_action>> stages;
  friend bool operator==(const schedule&, const schedule&) = default;
};

/// What a generator needs to know.
struct schedule_options {
  std::string_view name = "1f1b";  ///< "gpipe", "1f1b" (warm-up p-1-r), "1f1b-eager" (2(p-1-r))
  stage_index stage_count = 1;
  index_range micro_batches{};             ///< of the replica; empty in the closing round
  index_range validation_micro_batches{};  ///< empty when none is due
  bool recompute = false;                  ///< R before B on every stage but the last
};

/// Generates a schedule. `errc::config` for an unknown name, with the nearest one.
result<schedule> generate(const schedule_options& options);

/// Checks a schedule against the rules that make it safe to run, whoever wrote it:
/// every stage has each V and F of the range once, each B once and after its F, R at most once
/// between them, nothing else; B in order of micro-batch; and no deadlock: the union of program
/// order and data dependencies (F(s) after F(s-1), B(s) after B(s+1), V likewise) has no cycle.
/// The error names stage and action.
result<void> validate(const schedule& plan, const schedule_options& options);

/// The most micro-batches that the stage has forwarded and not yet finished backward.
std::uint32_t stash_peak(const std::vector<stage_action>& stage);

/// The same of `stage` in the schedule that `generate` would give, without generating it.
result<std::uint32_t> stash_peak_of(const schedule_options& options, stage_index stage);

/// "F0 F1 B0 ..."
std::string text_of(const std::vector<stage_action>& stage);

/// The schedule's name that a view runs by: its own, or `parallelism.schedule`. "auto", which only
/// the planner resolves, is "1f1b" until it has.
std::string_view schedule_of(const layout& shape, const job_options& job);

/// Micro-batches [begin, end) of `total` validation micro-batches for replica `index` of `count`:
/// as even as can be, earlier replicas first.
index_range validation_share(std::uint32_t total, replica_index index, std::uint32_t count);

}  // namespace shoal::core
