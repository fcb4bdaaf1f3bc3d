#include "actors/resident_memory.hpp"

#include <unistd.h>

#include <fstream>

namespace shoal::actors {

std::uint64_t resident_memory() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total = 0, resident = 0;
  file >> total >> resident;
  return file ? resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace shoal::actors
