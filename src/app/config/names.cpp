#include "app/config/names.hpp"

#include <algorithm>

namespace shoal::app {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table: the swap of neighbours looks two rows back.
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

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
