#pragma once
// Time as the machines see it: an argument, never read from a clock.

#include <chrono>

namespace shoal::core {

using time_point = std::chrono::steady_clock::time_point;

}  // namespace shoal::core
