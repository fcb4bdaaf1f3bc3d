#pragma once
// Tries depths, numbers of replicas and groupings of nodes, and keeps the candidates worth a second
// look.

#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "core/plan/candidate.hpp"

namespace shoal::core::planning {

// A candidate that takes so much longer than the best is still as good when it has other merits: a
// second holder of each block, no idle node, ...
constexpr double as_good = 1.05;
// ... or fewer bytes to move.
constexpr double as_fast = 1.02;

/// Nodes as classes of like speed, the most useful first: fast, then in `present`, then by id.
/// Speeds within 2 % of the fastest of a class become equal.
std::vector<worker> classify(const std::vector<plan_node>& nodes, const layout& present);

class search {
public:
  search(const price_list& prices, std::vector<worker> workers)
    : prices_(prices), workers_(std::move(workers)) {}

  /// Runs it. Empty when nothing fits. Otherwise the candidates that are as good as the best,
  /// have a second holder of each block if any of these has, use most nodes, and are as fast as the
  /// fastest of those; in order of step_s.
  std::vector<candidate> run();

  /// The best time for each number of replicas that was possible; less than that, where it was
  /// clear that it cannot be the best.
  const std::map<std::size_t, double>& best_by_replicas() const { return best_by_replicas_; }
  /// The same with all nodes at work; infinite when that is impossible.
  double best_with_all() const { return best_with_all_; }

private:
  void try_all(const std::vector<worker>& chosen);
  void note(std::size_t replicas, std::size_t workers, double seconds);

  const price_list& prices_;
  std::vector<worker> workers_;
  std::vector<candidate> pool_;
  double best_ = std::numeric_limits<double>::infinity();
  std::pair<bool, std::size_t> best_merit_{false, 0};
  double best_with_all_ = std::numeric_limits<double>::infinity();
  std::map<std::size_t, double> best_by_replicas_;
};

}  // namespace shoal::core::planning
