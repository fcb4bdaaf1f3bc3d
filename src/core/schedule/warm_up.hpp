#pragma once
// How far a stage runs ahead, and the turns it takes after that.
//
//   warm-up 2, 5 micro-batches:   F0 F1 | F2 B0  F3 B1  F4 B2 | B3 B4
//                                 ahead    forward and        drain
//                                          backward by turns
//
// The running job's generator (`schedule.hpp`) and those of whole plans (`make_plan.hpp`) share it:
// GPipe, 1F1B, eager and searched 1F1B, PipeDream and interleaved 1F1B differ in warm-ups only.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

namespace shoal::core {

/// How many micro-batches a stage forwards before its first turn.
using warm_up_rule = std::uint32_t (*)(std::uint32_t stages_after, std::uint32_t micro_batches);

struct named_warm_up {
  std::string_view name;
  warm_up_rule warm_up;
};

/// "gpipe", "1f1b" (classic: one for each stage that follows), "1f1b-eager" (two for each).
std::span<const named_warm_up> named_warm_ups();

/// The rule of that name; null when there is none.
warm_up_rule find_warm_up(std::string_view name);

/// Calls `forward(k)` and `backward(k)`, k in [0, count) each, in the order of the picture.
template <class Forward, class Backward>
void take_turns(std::uint32_t warm_up, std::uint32_t count, Forward forward, Backward backward) {
  std::uint32_t ahead = 0;
  while (ahead < std::min(warm_up, count)) forward(ahead++);
  for (std::uint32_t k = 0; k < count; ++k) {
    if (ahead < count) forward(ahead++);
    backward(k);
  }
}

}  // namespace shoal::core
