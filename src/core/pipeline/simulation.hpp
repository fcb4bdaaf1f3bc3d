#pragma once
// How long a step of the pipeline takes, without running it: discrete events in whole nanoseconds.
//
//   rank 0  [F0][F1][F2]      [B0][F3][B1] ...        a lane a rank:
//             \    \                                  cells in order, each when its input
//   link 0>1  [==]  [==]..latency..>                  is there; links serve one message at a time
//
// Same input, same output: there is no running random generator, and ties are settled by rank. A
// plan is compute-only; transfers follow from its placement. Several replicas, of any depths, run
// side by side; a stage's gradients are reduced when the last of them is there in all replicas, so
// that only the end of it is exposed. A replica that holds a stage on two ranks (Chimera, DualPipe)
// sums the two over its own links, and both run the optimizer.

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "core/pipeline/link_table.hpp"
#include "core/schedule/pipeline_plan.hpp"

namespace shoal::core {

/// One virtual stage, one micro-batch, on a rank of speed 1.
struct stage_costs {
  std::int64_t forward_ns = 0;
  std::int64_t backward_ns = 0;
  std::int64_t recompute_ns = 0;
  std::int64_t input_gradient_ns = 0;
  std::int64_t weight_gradient_ns = 0;
  std::uint64_t input_bytes = 0;      ///< boundary: activation in, gradient back
  std::uint64_t stash_bytes = 0;      ///< held from F (R where there is one) to B or W
  std::uint64_t parameter_bytes = 0;  ///< of the gradients, summed over replicas
  std::int64_t optimizer_ns = 0;      ///< once a step
};

/// A link other than the common one.
struct link_between {
  rank_index from = 0;
  rank_index to = 0;
  link_table table;
};

/// Everything about one replica but its schedule.
struct simulation_costs {
  std::vector<stage_costs> stages;  ///< by virtual stage
  std::vector<double> speeds;       ///< of each rank; empty: all 1
  /// Micro-batches that each rank may hold when it runs ahead of an opportunistic list, within the
  /// plan's own limit; empty: that alone.
  std::vector<std::uint32_t> live_max;
  link_table link;                   ///< each way between each pair of ranks
  std::vector<link_between> others;  ///< first match wins
  bool half_duplex = false;          ///< both ways of a pair share one line
  bool blocking_sends = false;       ///< a rank computes nothing while it sends
  /// Ranks with the same number share a network card of `card_bytes_per_s` each way, by equal
  /// parts. Empty, or a rate of 0: not limited. Numbers are common to all replicas of a step.
  std::vector<std::uint32_t> machines;
  double card_bytes_per_s = 0;
  std::int64_t cell_overhead_ns = 0;  ///< before each cell
  double overlap = 1;                 ///< time of cells in a group, of their sum
  /// Each cell takes longer by up to this share, drawn from hash(seed, rank, cell).
  double jitter = 0;
  std::uint64_t seed = 0;
  bool recompute_waits = false;  ///< R only when the gradient has come
  bool timeline = false;         ///< keep `simulation::records`

  const link_table& link_from(rank_index from, rank_index to) const;
};

enum class reduction_kind : std::uint8_t {
  ring,          ///< 2(k-1)/k n/rate + 2(k-1) latency
  partial_sums,  ///< each holder sums a shard: (k-1)/k n (pieces+1)/rate + 2 latency
};

/// What joins replicas at the end of a step.
struct reduction_costs {
  reduction_kind kind = reduction_kind::ring;
  link_table link;
  std::uint32_t pieces = 1;  ///< `partial_sums`: partial sums that one replica sends
  std::int64_t norm_ns = 0;  ///< exchange of norms when all sums are there
  std::int64_t step_overhead_ns = 0;
};

enum class record_kind : std::uint8_t { compute, transfer, reduce, optimize };

struct record {
  record_kind kind = record_kind::compute;
  std::uint32_t replica = 0;
  rank_index rank = 0;  ///< that computes or sends
  rank_index peer = 0;  ///< that receives; else `rank`
  cell what;            ///< a transfer names the cell that made it
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

struct rank_simulation {
  std::int64_t busy_ns = 0;
  std::int64_t first_ns = 0;     ///< begin of its first cell
  std::int64_t last_ns = 0;      ///< end of its last cell
  std::uint32_t live_peak = 0;   ///< (stage, micro-batch) pairs forwarded and not finished
  std::uint64_t bytes_peak = 0;  ///< of inputs and stashes
  std::int64_t bubble_ns(std::int64_t until_ns) const { return until_ns - busy_ns; }
};

struct simulation {
  std::int64_t makespan_ns = 0;           ///< of the step, with all that follows the pipeline
  std::int64_t pipeline_ns = 0;           ///< end of the last cell
  std::int64_t exposed_reduction_ns = 0;  ///< from then until all sums are there
  std::vector<std::vector<rank_simulation>> replicas;
  std::uint64_t events = 0;  ///< cells and transfers
  std::vector<record> records;

  /// (span - ideal) / ideal, ideal the busiest rank's compute: Megatron's word.
  double bubble_of_ideal() const;
  /// (span - ideal) / span: GPipe's word.
  double bubble_of_makespan() const;
};

struct replica_input {
  const pipeline_plan* plan = nullptr;
  const simulation_costs* costs = nullptr;
};

/// One replica: nothing to reduce but copies of a stage. `errc::config` for a plan that is
/// malformed or whose order waits for itself, naming the ranks; for costs that do not fit the plan.
result<simulation> simulate(const pipeline_plan& plan, const simulation_costs& costs);

/// A step of all replicas, which may differ in depth, order and number of micro-batches: ends when
/// all gradients are summed and applied. Gradients are matched by bytes from the start of the
/// chain, so parameter bytes must add up to the same in all replicas.
result<simulation> simulate_step(std::span<const replica_input> replicas,
                                 const reduction_costs& reduction);

}  // namespace shoal::core
