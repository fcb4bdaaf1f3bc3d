#pragma once
// Reads the profiles that PipeDream's profiler wrote.
//
//   node4 -- Conv2d(3, 64, ...) -- forward_compute_time=10.8, backward_compute_time=18.3,
//     activation_size=411041792.0, parameter_size=1180672.0[ -- stage_id=0]        (one line)
//   <tab>node3 -- node4
//
// Times are milliseconds, sizes bytes, of one mini-batch whose size the file does not tell. An
// activation may be a list, [a; b; c], which counts as its sum. The graph becomes a chain in
// topological order, lower numbers first; over a border go all outputs that are made before it and
// used after it. What the published files get wrong: the time of Input is that of loading data, so
// it is left out; where forward was timed without waiting for the device, backward looks ten times
// as long, so unlikely ratios are reported as suspicions.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "core/plan/partition_replicated.hpp"

namespace shoal::core::planning {

struct profile_row {
  std::string id;
  std::string description;
  double forward_ms = 0;
  double backward_ms = 0;
  double activation_bytes = 0;
  double parameter_bytes = 0;
  double crossing_bytes = 0;  ///< over the border just before this row
  std::uint32_t line = 0;     ///< of the text, from 1
};

struct text_profile {
  std::vector<profile_row> rows;        ///< in topological order, inputs left out; not empty
  std::vector<std::string> suspicions;  ///< sentences; empty when all ratios are likely
};

/// Limits of what is read.
constexpr std::size_t profile_text_bytes_max = 16 << 20;
constexpr std::size_t profile_node_count_max = 20'000;
constexpr std::size_t profile_edge_count_max = 200'000;

/// Reads a profile. `errc::config` with the line, what is wrong there and what belongs there.
result<text_profile> parse_profile_text(std::string_view text);

/// The rows as blocks for the partitioner: milliseconds and bytes; the stash of a row is its
/// output, what it holds are its parameters.
std::vector<chain_block> blocks_of(const text_profile& profile);

}  // namespace shoal::core::planning
