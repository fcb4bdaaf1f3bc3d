#pragma once
// How far a stage runs ahead, and the turns it takes after that.
//
//   warm-up 2, 5 micro-batches:   F0 F1 | F2 B0  F3 B1  F4 B2 | B3 B4
//                                 ahead    forward and        drain
//                                          backward by turns
//
// The generators of plans (`make_plan.hpp`) share it: GPipe, 1F1B, eager and searched 1F1B,
// PipeDream and interleaved 1F1B differ in warm-ups only.

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace shoal::core {

/// How many micro-batches a stage forwards before its first turn.
using warm_up_rule = std::uint32_t (*)(std::uint32_t stages_after, std::uint32_t micro_batches);

/// "gpipe", "1f1b" (classic: one for each stage that follows), "1f1b-eager" (two for each); null
/// for any other name.
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
