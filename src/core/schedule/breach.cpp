#include "core/schedule/breach.hpp"

#include <array>

#include "core/schedule/text.hpp"

namespace shoal::core {

std::string_view to_string(rule which) {
  constexpr std::array<std::string_view, 16> names{
    "counts",  "dependencies", "placement",    "channels",     "cycles",     "memory",
    "updates", "ties",         "morph points", "accumulation", "offloading", "groups",
    "routing", "denominators", "hash",         "warnings",
  };
  return names[static_cast<std::size_t>(which) - 1];
}

std::string name_of(rule which) {
  return "rule " + std::to_string(static_cast<int>(which)) + " (" + std::string(to_string(which)) +
         ")";
}

std::string place_of(rank_index r, std::size_t i, const cell& c) {
  return "rank " + std::to_string(r) + ", cell " + std::to_string(i) + " \"" + text_of(c) + "\"";
}

error breach(rule which, rank_index r, std::size_t i, const cell& c, const std::string& what) {
  return {errc::config, name_of(which) + ", " + place_of(r, i, c) + ": " + what + "."};
}

error breach(rule which, const std::string& what) {
  return {errc::config, name_of(which) + ": " + what + "."};
}

}  // namespace shoal::core
