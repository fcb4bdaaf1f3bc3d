#pragma once
// "Did you mean ...?"

#include <string>
#include <string_view>
#include <vector>

namespace shoal::app {

/// The candidate that `name` was most likely meant to be: the nearest by edit distance, a dotted
/// name also by its last part alone. Empty when nothing is near. Ties go to the first.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace shoal::app
