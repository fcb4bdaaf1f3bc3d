#pragma once
// The fixed order in which the gradients of N micro-batches are added.
//
//                      +                       N = 8, leaf = 2: leaves of two consecutive
//              +               +               micro-batches are added left to right, the
//          +       +       +       +           leaves' sums in a binary tree.
//         0+1     2+3     4+5     6+7
//
// Floating-point addition is not associative, so equal bits need an equal order. This one depends
// on N and leaf alone. A replica with micro-batches [a,b) can add up every subtree that lies inside
// [a,b) by itself: few partial sums ("pieces"). Whoever has all pieces finishes the tree.
//
// An inner node over n leaves splits at the largest power of two below n, so that a growing run of
// micro-batches closes subtrees like carries of a binary counter: with L leaves, a replica whose
// range begins at micro-batch 0 needs at most log2(L) + 2 partial sums in memory at once, any other
// that begins at a leaf 2 log2(L) + 1, and one that begins inside a leaf up to leaf - 1 more.

#include <cstdint>
#include <span>
#include <vector>

#include "core/layout.hpp"

namespace shoal::core {

/// The tree for `micro_batches` = N and `leaf`; both at least 1.
struct reduction_tree {
  std::uint32_t micro_batches = 1;
  std::uint32_t leaf = 1;
};

/// What adding micro-batch g to a replica's sums means, for sums kept in numbered slots.
struct reduction_action {
  enum class kind : std::uint8_t {
    start,  ///< slot := gradient of the micro-batch
    add,    ///< slot += gradient of the micro-batch
    merge,  ///< slot += other; `other` becomes free
  };
  kind what = kind::start;
  micro_batch_index micro_batch = 0;  ///< whose gradient it is; merge: the one that made it due
  std::uint32_t slot = 0;
  std::uint32_t other = 0;  ///< merge: slot right of `slot`
  friend bool operator==(const reduction_action&, const reduction_action&) = default;
};

/// How the pieces of a range come about.
struct accumulation {
  /// In order of micro-batch; those of micro-batch g may run when its gradient is there and all
  /// earlier ones have run.
  std::vector<reduction_action> actions;
  /// The pieces at the end: piece i covers `pieces[i]` and lies in slot `slots[i]`. Ordered, and
  /// together the whole range. Each is a subtree, or a run of micro-batches from the beginning of
  /// a leaf, or one micro-batch inside a leaf.
  std::vector<index_range> pieces;
  std::vector<std::uint32_t> slots;
  std::uint32_t slot_count = 0;
};

/// The pieces of `range` alone, without the way to them. `range` as for `accumulate`.
std::vector<index_range> pieces_of(const reduction_tree& tree, index_range range);

/// The pieces of `range`, and how to add them up. `range` within [0, N) and not empty.
accumulation accumulate(const reduction_tree& tree, index_range range);

/// `accumulate(tree, range).slot_count` alone: for planners, which ask of many ranges.
std::uint32_t slot_count_of(const reduction_tree& tree, index_range range);

/// Those actions of `sums` that the gradient of micro-batch g makes due, in order.
std::span<const reduction_action> actions_of(const accumulation& sums, micro_batch_index g);

/// One addition of the final sum: buffer `into` += buffer `from`, both numbers of pieces.
struct piece_addition {
  std::uint32_t into = 0;
  std::uint32_t from = 0;
  friend bool operator==(const piece_addition&, const piece_addition&) = default;
};

/// The additions that turn all pieces of all replicas, ordered by range and covering [0, N), into
/// the total, which ends in piece 0. Every piece is added exactly once. The pieces must be those
/// that `accumulate` gives for ranges that cover [0, N).
std::vector<piece_addition> finish(const reduction_tree& tree,
                                   const std::vector<index_range>& pieces);

/// Sums N doubles in the order of the tree. For losses.
double tree_sum(const reduction_tree& tree, const std::vector<double>& values);

}  // namespace shoal::core
