#pragma once
// What a misspelt name was most likely meant to be.

#include <span>
#include <string>
#include <string_view>

namespace shoal {

/// Letters to insert, delete, change, or swap with their neighbour, to turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate with the least edit distance, the first of equals; empty when there is none.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

}  // namespace shoal
