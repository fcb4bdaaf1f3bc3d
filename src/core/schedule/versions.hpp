#pragma once
// Which weights a pass reads where there is no flush, and until when they must be kept.
//
//   rank with warm-up 1:  0F0@0 0F1@0 0B0@0 0OPT0@1 0F2@1 0B1@0 0OPT1@2 0DROP@0 ...
//
// Version 0 is there at the start; each OPT publishes the next. A version is dropped as soon as no
// later cell of the rank reads it and it is not the newest.

#include <vector>

#include "core/schedule/pipeline_plan.hpp"

namespace shoal::core {

/// Gives a rank's order with DROP cells put where versions end. `order` has F, B, R, I, W with
/// versions and OPT with the versions that they publish, in rising order, all of one stage.
std::vector<cell> with_drops(const std::vector<cell>& order);

}  // namespace shoal::core
