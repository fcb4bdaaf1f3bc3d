#pragma once

#include <cstdint>

namespace shoal::actors {

/// Bytes of this process that are in memory, 0 when the system does not tell.
std::uint64_t resident_memory();

}  // namespace shoal::actors
