#pragma once
// One number for a whole plan: ranks that compare it know that they will run the same schedule.

#include <cstdint>

#include "core/schedule/pipeline_plan.hpp"

namespace shoal::core {

/// A stable 64-bit hash of all content of the plan: name, sizes, placement, chains, cells with
/// versions and groups, semantics, policy. Equal plans have equal hashes on every machine and in
/// every release; it guards against mistakes, not against malice.
std::uint64_t plan_hash(const pipeline_plan& plan);

}  // namespace shoal::core
