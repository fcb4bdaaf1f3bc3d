#pragma once
// Schedules by name: from a few numbers to the order in which every rank computes.
//
//   make_plan({.name = "1f1b", .ranks = 3, .micro_batches = 4}):
//     0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3
//     1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3
//     2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3
//
// Each family of generators is a file, which says where its algorithm comes from. Plans are
// compute-only (`lower` adds sends and the rest); those without a flush also hold OPT and DROP, for
// the versions of weights are part of their order. All pass `validate_plan`.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/schedule/cell_costs.hpp"
#include "core/schedule/pipeline_plan.hpp"

namespace shoal::core {

/// What a generator may need to know. What a schedule has no use for must be left as it is here; a
/// setting that would be ignored is refused.
struct plan_options {
  // clang-format off
  /// Name               | placement      | what it is
  /// "gpipe"            | linear         | all F, then all B in order
  /// "1f1b"             | linear         | warm-up p-1-r, or the vector `warm_up`
  /// "1f1b-eager"       | linear         | warm-up 2(p-1-r)
  /// "looped-bfs"       | looped, v      | all micro-batches of a chunk, then the next chunk
  /// "interleaved-1f1b" | looped, v >= 2 | Megatron's, in groups of `group` micro-batches
  /// "varuna"           | linear         | its list, by `costs`, and its opportunistic order
  /// "varuna-static"    | linear         | its list alone
  /// "pipedream"        | linear         | 1F1B-RR, an update after each B, stashed versions
  /// "pipedream-sync"   | linear         | the same, one version travels with the micro-batch
  /// "pipedream-2bw"    | linear         | an update a batch, no flush, two versions
  /// "zb-h1", "zb-h2"   | linear         | I and W apart; memory of 1F1B, or twice that
  /// "zb-v"             | V, 2 chunks    | I and W apart, no bubble where F = I = W
  /// "dualpipe"         | two directions | p even, m even, m >= 2p
  /// "dualpipe-v"       | V, 2 chunks    | m >= 2p
  /// "chimera"          | two directions | p even, m even; merged by `costs`
  // clang-format on
  std::string name = "1f1b";
  std::uint32_t ranks = 1;          ///< p
  std::uint32_t chunks = 0;         ///< v, virtual stages a rank; 0: what the schedule needs, or 2
  std::uint32_t micro_batches = 1;  ///< of a batch
  std::vector<std::uint32_t> warm_up;   ///< "1f1b": forwards before the first turn, one a rank
  std::vector<std::uint32_t> replicas;  ///< "pipedream": ranks of each stage; empty: 1 each
  std::uint32_t group = 0;              ///< "interleaved-1f1b": Megatron's group size; 0: p
  /// R right before each B but on the last stage of the chain. "varuna" always does.
  bool recompute = false;
  std::uint32_t batches = 1;      ///< "pipedream-2bw": how many, of `micro_batches` each
  std::vector<cell_costs> costs;  ///< "varuna", "chimera": empty, or one a rank
  std::uint32_t live_max = none;  ///< "varuna": cap of its run-time order (`order_policy`)
};

/// All names, in the order of the table.
const std::vector<std::string>& plan_names();

/// Makes the schedule. `errc::config` for an unknown name, with the nearest one; for a number that
/// the schedule cannot take, with the nearest legal one; for sizes beyond the limits of
/// `pipeline_plan.hpp`. Deterministic.
result<pipeline_plan> make_plan(const plan_options& options);

}  // namespace shoal::core
