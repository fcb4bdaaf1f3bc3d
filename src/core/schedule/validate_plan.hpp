#pragma once
// What makes a schedule safe to run, whoever wrote it. Nothing is run: all is seen from the lists.
//
//    1 counts         each stage and micro-batch has F once, and B once or I and W once
//    2 dependencies   on a rank: F, R, B or I, W; received before it is used, sent after it is made
//    3 placement      each cell is on the rank of its stage; blocks cover the model
//    4 channels       each edge between ranks has a send and a receive, in one order a channel
//    5 cycles         program order, dependencies and meetings (a send meets its receive, a
//                     collective all its ranks) have no cycle
//    6 memory         live bytes fit at every cell; versions of weights are there when read
//    7 updates        REDUCE_GRAD after the last B or W, OPT after REDUCE_GRAD and NORM
//    8 ties           TIE after all gradients of tied stages, before their OPT
//    9 morph points   MORPH_OK where nothing is outstanding, at the same place on all ranks
//   10 accumulation   an update has each micro-batch of its batch once
//   11 offloading     no cell of this language offloads: nothing to check
//   12 groups         cells that overlap are neighbours and independent
//   13 routing        all cells of a micro-batch at a stage are on one rank
//   14 denominators   samples of the micro-batches add up to those of the batch
//   15 hash           all ranks have the same plan
//   16 warnings       what runs, but not well
//
// Sends and receives must be complete where there are any, likewise REDUCE_GRAD, NORM and OPT;
// plans without a flush need OPT.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/layout.hpp"
#include "core/schedule/pipeline_plan.hpp"

namespace shoal::core {

/// Bytes of one virtual stage, for one micro-batch where it says so.
struct stage_memory {
  std::uint64_t input = 0;     ///< boundary input, kept from its arrival to the last B or W
  std::uint64_t stash = 0;     ///< what B needs beside it, from F (from R where there is one)
  std::uint64_t gradient = 0;  ///< gradient of the output, from its arrival to B or W
  std::uint64_t weights = 0;   ///< one version of the parameters
  std::uint64_t fixed = 0;     ///< optimizer state, summed gradients, workspace: always there
};

/// What the plan is checked against beside the rules; all may be left out.
struct validation_limits {
  /// Of each virtual stage. Without it memory is counted in micro-batches only.
  std::vector<stage_memory> memory;
  /// Bytes of each rank; needs `memory`.
  std::vector<std::uint64_t> budgets;
  /// Sets of stages that share a parameter (disjoint); each needs TIE cells where OPT is.
  std::vector<std::vector<virtual_stage>> ties;
  /// Gradients are clipped or checked: each rank needs a NORM before OPT.
  bool norm = false;
  /// The blocks of each virtual stage, and of the model; without it they are not checked.
  std::vector<index_range> blocks;
  std::uint32_t block_count = 0;
  /// Samples (or tokens) of each micro-batch, and those that the loss is divided by.
  std::vector<std::uint64_t> samples;
  std::uint64_t sample_count = 0;
  /// The hashes that ranks have sent, in order of rank.
  std::vector<std::uint64_t> hashes;
  /// Whether a send waits for its receive. Without it sends are buffered without limit.
  bool rendezvous = true;
  /// A receive this many compute cells before its use, or more, is warned of.
  std::uint32_t receive_ahead_max = 16;
  /// Time of a hop, and of F and B of a micro-batch on a rank, in one unit; 0: unknown. Warm-ups
  /// too short to hide the hop are warned of.
  std::uint64_t hop_time = 0;
  std::uint64_t turn_time = 0;
};

/// What a rank holds at most, and when it starts to go backward.
struct rank_figures {
  std::uint32_t live_peak = 0;      ///< (stage, micro-batch) pairs forwarded and not finished
  std::uint32_t versions_peak = 0;  ///< of the weights of one stage
  std::uint64_t bytes_peak = 0;     ///< 0 without `validation_limits::memory`
  std::uint32_t warm_up = 0;        ///< F cells before the first B or I
};

struct validation {
  std::vector<rank_figures> ranks;
  bool executable = false;  ///< it has sends and receives, or needs none
  std::uint64_t hash = 0;   ///< `plan_hash`
  std::vector<std::string> warnings;
};

/// Checks all rules. `errc::config` with the first breach: number and name of the rule, place
/// ("rank 2, cell 7 "2F3""), what is wrong, the nearest legal thing; a cycle is told as the
/// shortest chain of "rank 3 waits for ...". `errc::no_memory` where a budget is short, with how
/// much. Pure; linear in the cells but for the report of a cycle.
result<validation> validate_plan(const pipeline_plan& plan, const validation_limits& limits = {});

}  // namespace shoal::core
