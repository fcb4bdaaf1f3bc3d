#pragma once
// What this program was built from. The source is cmake/build_info.cpp.in.

#include <string>
#include <utility>
#include <vector>

namespace shoal::app {

/// "0.1.0 (a1b2c3d)": the version, and the commit where it is known.
std::string build_version();

/// {"shoal", "0.1.0"}, {"commit", ...}, {"torch", ...}, {"caf", ...}, {"rocksdb", ...},
/// {"compiler", ...}, {"build", ...}; "none" for what was left out.
std::vector<std::pair<std::string, std::string>> build_info();

}  // namespace shoal::app
