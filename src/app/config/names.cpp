#include "app/config/names.hpp"

#include <algorithm>

#include "base/nearest.hpp"

namespace shoal::app {

namespace {

std::string_view last_part(std::string_view name) {
  auto dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

// A third of the letters may be wrong; more than that is another word.
bool near(std::size_t distance, std::string_view name) { return distance * 3 <= name.size() + 1; }

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_score = SIZE_MAX;
  for (const auto& candidate : candidates) {
    auto whole = edit_distance(name, candidate);
    auto part = edit_distance(last_part(name), last_part(candidate));
    // The right key in the wrong table is a candidate too, behind a misspelt one of this table.
    std::size_t score = SIZE_MAX;
    if (near(whole, last_part(name)) || near(whole, candidate)) score = whole;
    if (near(part, last_part(name))) score = std::min(score, part + 3);
    if (score < best_score) {
      best_score = score;
      best = candidate;
    }
  }
  return best;
}

}  // namespace shoal::app
