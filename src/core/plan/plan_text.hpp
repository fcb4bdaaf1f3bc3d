#pragma once
// What a plan says of itself: the layout and its price, the next best, who is spare and why.

#include <map>
#include <string>
#include <vector>

#include "core/plan/search.hpp"

namespace shoal::core::planning {

/// Rounded; at most 1e9 s, for what never ends.
nanoseconds nanoseconds_of(double seconds);
std::string text_of_bytes(std::uint64_t bytes);
std::string text_of_time(double seconds);
/// "1 node", "3 nodes".
std::string count_of(std::size_t count, const std::string& what);

/// Nodes that get no work, and why.
struct spare_list {
  std::vector<node_id> nodes;
  std::map<std::string, std::vector<node_id>> by_reason;

  void add(node_id node, const std::string& why);
  /// "; node 3 is spare: ..."; of many with one reason the first are named.
  std::string text() const;
};

/// Why `chosen`, with the numbers behind it.
std::string reason_for(const candidate& chosen, const search& found, const layout& present);

}  // namespace shoal::core::planning
