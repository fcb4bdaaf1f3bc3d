#pragma once
// The nodes of `shoal plan`: so many of each kind.
//
//   --nodes 12                                          12 alike
//   --kind 8,memory=16GiB --kind 4,speed=0.5            8 of 16 GiB, 4 at half the speed

#include <cstdint>
#include <vector>

#include "app/config/options.hpp"
#include "core/plan/plan.hpp"

namespace shoal::app {

struct node_kind {
  std::uint32_t count = 0;
  double speed = 1;                ///< of the profile's times
  std::uint64_t memory_bytes = 0;  ///< of each; 0: not limited
};

/// As `--kind`, `--nodes` and `--memory` say; `memory_bytes` is for kinds that name none.
/// `errc::usage` with the option and what is expected.
result<std::vector<node_kind>> node_kinds_of(const plan_options& options,
                                             std::uint64_t memory_bytes);

std::uint32_t node_count_of(const std::vector<node_kind>& kinds);

/// Numbered from 1, kind by kind.
std::vector<core::plan_node> nodes_of(const std::vector<node_kind>& kinds);

}  // namespace shoal::app
