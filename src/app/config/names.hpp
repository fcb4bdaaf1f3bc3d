#pragma once
// "Did you mean ...?"

#include <string>
#include <string_view>
#include <vector>

namespace shoal::app {

/// Letters to insert, delete, change, or swap with a neighbour to turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that `name` was most likely meant to be: the nearest by edit distance, a dotted
/// name also by its last part alone. Empty when nothing is near. Ties go to the first.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace shoal::app
