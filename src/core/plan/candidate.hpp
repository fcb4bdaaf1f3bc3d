#pragma once
// A possible layout with its price.

#include <optional>
#include <vector>

#include "core/plan/chain.hpp"

namespace shoal::core::planning {

struct candidate {
  std::vector<chain> chains;
  double step_s = 0;      ///< expected
  double exchange_s = 0;  ///< part of it: gradients that nothing hides
  double redo_s = 0;      ///< beside it: steps that losses undo, spread over all steps
  std::uint64_t moved_bytes = 0;

  std::size_t worker_count() const;
  /// Without order and `ahead`.
  layout shape() const;
  bool is_redundant() const { return chains.size() > 1; }
  double cost_s() const { return step_s + redo_s; }
};

/// Cuts blocks and micro-batches for chains of given workers: blocks so that the slowest stage is
/// as fast as can be, micro-batches so that all replicas end together, on leaves of the reduction
/// tree where that costs little. Nothing when a stage does not fit into its node, or there are
/// fewer micro-batches than chains.
std::optional<candidate> build(const price_list& prices, std::vector<std::vector<worker>> chains);

/// How many nodes a chain has, and what they are together.
struct chain_size {
  stage_index stages = 1;
  double speed = 1;
  double memory_bytes = 0;
};

/// No candidate of these chains takes less: as if blocks and micro-batches could be cut anywhere.
/// Infinite where a chain's nodes together cannot hold the model.
double least_seconds(const price_list& prices, const std::vector<chain_size>& chains);

/// Sets slowest_s, fill_s and the prices of the whole from the rest.
void reprice(const price_list& prices, candidate& c);

/// Whether every stage of every chain fits into its node.
bool fits(const price_list& prices, const candidate& c);

}  // namespace shoal::core::planning
