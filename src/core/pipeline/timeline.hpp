#pragma once
// A simulated step as a picture: for the terminal, as SVG, and as a trace for Chrome or Perfetto.
// All need a simulation made with `simulation_costs::timeline`.

#include <cstddef>
#include <string>

#include "core/pipeline/simulation.hpp"

namespace shoal::core {

/// A line a rank, time from left to right, a letter a column: F, B, I, W, R what the rank computes
/// most of in that time, "." nothing; then r while gradients are exchanged and o in the optimizer.
///
///   0  FFFF....BBFFBBFF..rro
///   1   FFFFBBFFBBFF  ...
std::string picture_of(const simulation& step, std::size_t columns = 100);

/// The same in colours, with the micro-batches written in where there is room.
std::string svg_of(const simulation& step);

/// Trace events (JSON array format): a process a replica, a thread a rank, another for what it
/// sends. Times in microseconds, to the nanosecond.
std::string trace_of(const simulation& step);

}  // namespace shoal::core
