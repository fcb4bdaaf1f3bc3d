#pragma once
// Every shape that a few nodes allow.

#include <cstdint>
#include <vector>

#include "core/layout.hpp"

namespace shoal::test {

/// All depths of replicas that use 1 to `nodes` nodes, deepest first: {3}, {2,1}, {1,1,1}, ...; a
/// depth is at most `blocks`.
std::vector<std::vector<std::uint32_t>> all_depths(std::uint32_t nodes, std::uint32_t blocks);

/// How blocks and micro-batches are cut.
enum class split { even, front_heavy, back_heavy };

/// The layout of these depths. Every stage keeps a block and every replica a micro-batch; what is
/// left over goes evenly, to the first, or to the last.
core::layout make_layout(const std::vector<std::uint32_t>& depths, split cut, std::uint32_t blocks,
                         std::uint32_t micro_batches);

}  // namespace shoal::test
