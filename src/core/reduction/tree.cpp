#include "core/reduction/tree.hpp"

#include <algorithm>
#include <bit>

#include "base/assert.hpp"

namespace shoal::core {

namespace {

/// A node of the tree: a run of leaves. One leaf, or an inner node.
struct tree_node {
  std::uint32_t first = 0;
  std::uint32_t last = 1;  // past the end

  bool is_leaf() const { return last - first == 1; }
  std::uint32_t split() const { return first + std::bit_floor(last - first - 1); }
  tree_node left() const { return {first, split()}; }
  tree_node right() const { return {split(), last}; }
};

tree_node root_of(const reduction_tree& tree) {
  SHOAL_ASSERT(tree.micro_batches >= 1 && tree.leaf >= 1);
  return {0, (tree.micro_batches - 1) / tree.leaf + 1};
}

index_range covered(const reduction_tree& tree, tree_node node) {
  auto end = std::uint64_t{node.last} * tree.leaf;
  return {node.first * tree.leaf,
          static_cast<std::uint32_t>(std::min<std::uint64_t>(end, tree.micro_batches))};
}

/// What a replica can add up by itself: a whole node of the tree, or a run inside a leaf.
struct piece {
  index_range run;
  tree_node node;
  bool is_node = false;
};

/// Calls `found(piece)` for the pieces of the range below `node`, in order.
template <class Found>
void visit_pieces(const reduction_tree& tree, tree_node node, index_range range, Found& found) {
  auto whole = covered(tree, node);
  if (whole.end <= range.begin || range.end <= whole.begin) return;
  if (range.begin <= whole.begin && whole.end <= range.end) {
    found(piece{whole, node, true});
  } else if (!node.is_leaf()) {
    visit_pieces(tree, node.left(), range, found);
    visit_pieces(tree, node.right(), range, found);
  } else if (range.begin <= whole.begin) {
    // From its beginning a leaf can be added up as far as the range goes; later micro-batches wait
    // for that sum, each by itself.
    found(piece{{whole.begin, range.end}, node, false});
  } else {
    for (auto g = range.begin; g < std::min(whole.end, range.end); ++g)
      found(piece{{g, g + 1}, node, false});
  }
}

template <class Found>
void visit_pieces(const reduction_tree& tree, index_range range, Found found) {
  SHOAL_ASSERT(range.begin < range.end && range.end <= tree.micro_batches);
  visit_pieces(tree, root_of(tree), range, found);
}

/// Sums that are in memory at once while those of a node's leaves are added up.
std::uint32_t sums_at_once(tree_node node) {
  // The left half is larger, and its sum waits for the right one.
  std::uint32_t most = 1;
  for (std::uint32_t waiting = 0;; node = node.right(), ++waiting) {
    auto left = node.is_leaf() ? 1 : node.split() - node.first;  // a power of two
    most = std::max(most, waiting + static_cast<std::uint32_t>(std::bit_width(left)));
    if (node.is_leaf()) return most;
  }
}

/// Walks pieces in order of micro-batch and writes down what to do with each gradient.
class accumulator {
public:
  explicit accumulator(const reduction_tree& tree) : tree_(tree) {}

  accumulation run(index_range range) {
    visit_pieces(tree_, range, [&](const piece& p) {
      made_.slots.push_back(p.is_node ? sum(p.node) : add_up(p.run));
      made_.pieces.push_back(p.run);
    });
    return std::move(made_);
  }

private:
  std::uint32_t sum(tree_node node) {
    if (node.is_leaf()) return add_up(covered(tree_, node));
    auto left = sum(node.left());
    auto right = sum(node.right());
    made_.actions.push_back({.what = reduction_action::kind::merge,
                             .micro_batch = covered(tree_, node).end - 1,
                             .slot = left,
                             .other = right});
    used_[right] = false;
    return left;
  }

  std::uint32_t add_up(index_range run) {
    auto slot = take_slot();
    for (auto g = run.begin; g < run.end; ++g) {
      auto what = g == run.begin ? reduction_action::kind::start : reduction_action::kind::add;
      made_.actions.push_back({.what = what, .micro_batch = g, .slot = slot});
    }
    return slot;
  }

  std::uint32_t take_slot() {
    auto free = std::find(used_.begin(), used_.end(), false);
    auto slot = static_cast<std::uint32_t>(free - used_.begin());
    if (free == used_.end()) used_.push_back(false);
    used_[slot] = true;
    made_.slot_count = static_cast<std::uint32_t>(used_.size());
    return slot;
  }

  reduction_tree tree_;
  accumulation made_;
  std::vector<bool> used_;
};

/// Adds pieces up to the sum of one tree node, from the top: a piece that is the node is its sum.
class finisher {
public:
  finisher(const reduction_tree& tree, const std::vector<index_range>& pieces)
    : tree_(tree), pieces_(pieces) {}

  std::vector<piece_addition> run() {
    auto total = sum(root_of(tree_));
    SHOAL_ASSERT(total == 0 && next_ == pieces_.size());
    return std::move(additions_);
  }

private:
  /// The number of the piece that holds the node's sum after the additions so far.
  std::uint32_t sum(tree_node node) {
    auto whole = covered(tree_, node);
    SHOAL_ASSERT(next_ < pieces_.size() && pieces_[next_].begin == whole.begin);
    if (pieces_[next_] == whole) return next_++;
    if (node.is_leaf()) return sum_leaf(whole);
    auto left = sum(node.left());
    auto right = sum(node.right());
    additions_.push_back({left, right});
    return left;
  }

  std::uint32_t sum_leaf(index_range leaf) {
    auto into = next_++;
    for (auto reached = pieces_[into].end; reached < leaf.end; ++next_) {
      // Only single micro-batches may follow: a longer run would have been added in another order.
      SHOAL_ASSERT(next_ < pieces_.size() && pieces_[next_].begin == reached);
      SHOAL_ASSERT(pieces_[next_].size() == 1);
      additions_.push_back({into, next_});
      reached = pieces_[next_].end;
    }
    return into;
  }

  reduction_tree tree_;
  std::span<const index_range> pieces_;
  std::vector<piece_addition> additions_;
  std::uint32_t next_ = 0;
};

double sum_values(const reduction_tree& tree, tree_node node, std::span<const double> values) {
  if (!node.is_leaf())
    return sum_values(tree, node.left(), values) + sum_values(tree, node.right(), values);
  auto run = covered(tree, node);
  double sum = values[run.begin];
  for (auto g = run.begin + 1; g < run.end; ++g) sum += values[g];
  return sum;
}

}  // namespace

std::vector<index_range> pieces_of(const reduction_tree& tree, index_range range) {
  std::vector<index_range> runs;
  visit_pieces(tree, range, [&](const piece& p) { runs.push_back(p.run); });
  return runs;
}

accumulation accumulate(const reduction_tree& tree, index_range range) {
  return accumulator(tree).run(range);
}

std::uint32_t slot_count_of(const reduction_tree& tree, index_range range) {
  // A slot is taken anew only when all are in use, so there are as many as sums at once.
  std::uint32_t most = 0, before = 0;
  visit_pieces(tree, range, [&](const piece& p) {
    most = std::max(most, before++ + (p.is_node ? sums_at_once(p.node) : 1));
  });
  return most;
}

std::span<const reduction_action> actions_of(const accumulation& sums, micro_batch_index g) {
  auto [begin, end] = std::ranges::equal_range(sums.actions, g, {}, &reduction_action::micro_batch);
  return {begin, end};
}

std::vector<piece_addition> finish(const reduction_tree& tree,
                                   const std::vector<index_range>& pieces) {
  return finisher(tree, pieces).run();
}

double tree_sum(const reduction_tree& tree, const std::vector<double>& values) {
  SHOAL_ASSERT(values.size() == tree.micro_batches);
  return sum_values(tree, root_of(tree), values);
}

}  // namespace shoal::core
