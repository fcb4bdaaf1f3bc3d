#pragma once
// What is told about a run: steps, morphs, and everything else that happens. Plain data, made by
// the supervisor's side of the program and by the reference, shown and written by this folder.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/strong_id.hpp"
#include "core/messages.hpp"

namespace shoal::telemetry {

/// A round that was decided, as `core::decided` or the reference tell it.
struct step_record {
  std::uint64_t step = 0;  ///< the round
  core::decision what = core::decision::apply;
  double loss = 0;
  double gradient_norm = 0;  ///< before clipping
  double learning_rate = 0;
  std::uint64_t view = 0;                 ///< 0 in the reference
  std::uint64_t digest_before = 0;        ///< of all weights after `step - 1`
  std::optional<double> validation_loss;  ///< of those weights
  std::optional<core::not_finite> offence;
  double time_s = 0;  ///< when it was heard of, seconds since 1970
};

step_record record_of(const core::decided& heard, double time_s);

/// What a change of shape cost.
struct morph_record {
  std::string cause;   ///< "start", "loss", "arrival", "leave", "restart"
  std::string reason;  ///< a sentence: "node 3 was lost: connection closed"
  std::uint64_t view = 0;
  std::uint64_t step = 0;  ///< everyone met at the weights after this
  std::uint32_t nodes_before = 0;
  std::uint32_t nodes_after = 0;
  std::string layout;  ///< text_of the new one
  std::uint64_t moved_bytes = 0;
  double pause_s = 0;  ///< last decision before to first one after, less one step's own time
  std::vector<std::pair<std::string, double>> parts_s;  ///< detect, agree, rewire, move, redo
};

/// Seconds since 1970, now.
double unix_time_s();

}  // namespace shoal::telemetry
