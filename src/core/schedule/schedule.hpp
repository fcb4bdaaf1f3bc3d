#pragma once
// A schedule of the running job: for every stage of a replica, what it computes in one round.
//
//   1F1B, 3 stages, 4 micro-batches, classic warm-up (p-1-r):
//     stage 0:  F0 F1 F2 B0 F3 B1 B2 B3
//     stage 1:  F0 F1 B0 F2 B1 F3 B2 B3
//     stage 2:  F0 B0 F1 B1 F2 B2 F3 B3
//
// The order is that of a plan (`make_plan.hpp`), numbered as the step numbers micro-batches;
// validation passes come first: V0 V1 ... run forward only. Backward passes of a block run in order
// of micro-batch in every schedule here, so that gradients can be added as they come.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "core/job.hpp"
#include "core/layout.hpp"
#include "core/schedule/pipeline_plan.hpp"

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
  std::uint32_t chunk = 0;  ///< of the stage
  friend auto operator<=>(const stage_action&, const stage_action&) = default;
};

/// The actions of every stage of one replica; `stages[s]` runs strictly in order, unless
/// `opportunistic`: then, where a backward pass or its recompute must wait for the gradient, the
/// next forward pass that need not wait may run before it, as long as fewer than `live_max[s]`
/// micro-batches are between their forward and backward pass.
struct schedule {
  std::vector<std::vector<stage_action>> stages;
  bool opportunistic = false;
  std::vector<std::uint32_t> live_max;  ///< by stage
  friend bool operator==(const schedule&, const schedule&) = default;
};

/// What a schedule is made from.
struct schedule_options {
  // clang-format off
  /// Name               | what it is (plan of `make_plan`)
  /// "gpipe"            | all F, then all B
  /// "1f1b"             | warm-up p-1-r
  /// "1f1b-eager"       | warm-up 2(p-1-r)
  /// "1f1b-searched"    | warm-up `ahead`
  /// "interleaved-1f1b" | over several chunks a stage; with one chunk "1f1b"
  /// "varuna"           | its list, run opportunistically with `ahead` as live_max; needs recompute
  // clang-format on
  std::string_view name = "1f1b";
  stage_index stage_count = 1;             ///< p
  index_range micro_batches{};             ///< of the replica; empty in the closing round
  index_range validation_micro_batches{};  ///< empty when none is due
  /// R before B but on the last part of the chain; one a stage, or empty: none.
  std::vector<bool> recompute;
  std::uint32_t chunks = 1;          ///< a stage; more than one with "interleaved-1f1b" alone
  std::vector<std::uint32_t> ahead;  ///< one a stage, as `replica::ahead`; empty: as "1f1b",
                                     ///< or no limit
};

/// Generates a schedule. `errc::config` for an unknown name, with the nearest one, and for what
/// does not go together.
result<schedule> generate(const schedule_options& options);

/// The plan that it follows, micro-batches numbered from 0; not for the closing round.
result<pipeline_plan> plan_of(const schedule_options& options);

/// By stage: the most forward passes of chunks that it has done and not yet finished backward in
/// the schedule that `generate` would give; what `live_max` allows where that is opportunistic.
result<std::vector<std::uint32_t>> stash_peaks_of(const schedule_options& options);

/// "F0 F1 B0 ..."; "F0.1" for chunk 1.
std::string text_of(const std::vector<stage_action>& stage);

/// The schedule's name that a view runs by: its own, or `parallelism.schedule`. "auto", which only
/// the planner resolves, is "1f1b" until it has.
std::string_view schedule_of(const layout& shape, const job_options& job);

/// Whether the stage keeps only the inputs of its parts of the chain, and runs them forward again
/// before they go backward; the last part never does.
bool recomputes(const stage& s, const job_options& job);

/// What `generate` needs for replica `index` of the view, but for the round's micro-batches.
schedule_options schedule_options_of(const layout& shape, replica_index index,
                                     const job_options& job);

/// Whether a stage of replica `index` can run: `generate` would make its schedule. The error is
/// `generate`'s, under `code`.
result<void> check_order(const layout& shape, replica_index index, const job_options& job,
                         errc code);

/// Micro-batches [begin, end) of `total` validation micro-batches for replica `index` of `count`:
/// as even as can be, earlier replicas first.
index_range validation_share(std::uint32_t total, replica_index index, std::uint32_t count);

}  // namespace shoal::core
