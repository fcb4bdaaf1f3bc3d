#pragma once
// A step as the event loop wants it: cells in flat arrays, costs multiplied out, links numbered.
//
//   tasks (cells, or groups that run as one) of all ranks of all replicas, in program order;
//   an edge is what a cell gives to a neighbour stage: on the same rank at once, else by a link

#include <cstdint>
#include <span>
#include <vector>

#include "core/pipeline/simulation.hpp"

namespace shoal::core::events {

constexpr std::uint32_t nothing = UINT32_MAX;

struct edge {
  std::uint32_t target = nothing;  // task
  std::uint32_t link = nothing;    // at once where there is none
  std::int64_t occupancy_ns = 0;
  std::int64_t latency_ns = 0;
};

struct task {
  std::int64_t duration_ns = 0;
  std::uint32_t first_edge = 0;
  std::uint32_t edge_count = 0;
  std::int32_t live = 0;     // change of live pairs at the end (-) or begin (+)
  std::uint16_t inputs = 0;  // not there yet
  bool is_forward = false;
  bool waits = false;  // a recompute whose gradient decides whether it is worth running
  std::uint32_t partner = nothing;  // of a recompute: the backward that it is for
};

struct lane {
  std::uint32_t begin = 0, end = 0;  // tasks
  bool opportunistic = false;
  bool blocking = false;
  std::uint32_t live_max = UINT32_MAX;
};

struct wire {
  std::uint32_t from = 0, to = 0;  // lanes
  std::uint32_t line = 0;          // what it shares with the way back, if half-duplex
  std::uint32_t card_out = nothing, card_in = nothing;
};

struct program {
  std::vector<task> tasks;
  std::vector<edge> edges;
  std::vector<lane> lanes;
  std::vector<wire> wires;
  std::uint32_t line_count = 0;
  std::vector<double> cards;  // bytes/ns each way
  std::vector<std::uint64_t> edge_bytes;
  // For reports only.
  std::vector<cell> cells;               // first of a task
  std::vector<std::uint32_t> cell_ends;  // of a task, into `all_cells`
  std::vector<cell> all_cells;
  std::vector<std::uint32_t> replica_of;  // lane
  std::vector<rank_index> rank_of;        // lane
};

/// Costs and plans made into a program, after checking both.
result<program> compile(std::span<const replica_input> replicas);

struct outcome {
  std::vector<std::int64_t> begin_ns, end_ns;     // by task
  std::vector<std::int64_t> sent_ns, arrived_ns;  // by edge: when it took the line, when it came
  std::uint64_t events = 0;
};

/// Runs it. `errc::config` when lanes wait for each other for ever.
result<outcome> run(const program& p);

}  // namespace shoal::core::events
