#pragma once
// Cuts of chains whose nodes have all the memory they want, each made once: chains of like speeds
// come again and again, within a search and from one order of passes to the next.

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/plan/costs.hpp"

namespace shoal::core::planning {

class free_cuts {
public:
  /// For the blocks of `cost`; with `recompute` all parts of a chain but the last recompute.
  free_cuts(const costs& cost, bool recompute) : cost_(cost), recompute_(recompute) {}

  /// The cut whose slowest stage is as fast as can be (`cut_chunks`), by part of the chain;
  /// `speeds` by stage, each above 0. Nothing when there are more parts than blocks. Stays where it
  /// is as long as this lives.
  const std::optional<std::vector<index_range>>& of(std::span<const double> speeds,
                                                    std::uint32_t chunks);

private:
  const costs& cost_;
  bool recompute_;
  std::vector<double> key_;  // chunks, then speeds as multiples of the first
  std::map<std::vector<double>, std::optional<std::vector<index_range>>> known_;
};

}  // namespace shoal::core::planning
