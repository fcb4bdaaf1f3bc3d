#pragma once
// Numbers that cannot be mixed up: a node is not a step, a step is not a view.

#include <compare>
#include <cstdint>
#include <functional>

namespace shoal {

/// An integer with a meaning. Two ids of different `Tag` do not compare, convert or add.
/// Starts at zero, which everywhere means "none yet"; `next()` and `before()` are the only
/// arithmetic.
template <class Tag>
struct strong_id {
  std::uint64_t value = 0;

  constexpr strong_id next() const { return {value + 1}; }
  constexpr strong_id before() const { return {value - 1}; }
  constexpr explicit operator bool() const { return value != 0; }
  friend constexpr auto operator<=>(strong_id, strong_id) = default;
};

/// A running `shoal node`; handed out by the supervisor, never used twice in a job. 0 is nobody.
using node_id = strong_id<struct node_tag>;
/// Grows each time a node joins, so that words of its former life can be told apart.
using incarnation_id = strong_id<struct incarnation_tag>;
/// The number of applied optimizer steps. Weights "at step 0" are the initial ones.
using step_id = strong_id<struct step_tag>;
/// The number of a layout in force; only grows.
using view_id = strong_id<struct view_tag>;
/// The number of a supervisor's reign; only grows.
using term_id = strong_id<struct term_tag>;

/// Places in lists, counted from zero; plain so that they can index, named so that they read.
using block_index = std::uint32_t;
using stage_index = std::uint32_t;
using replica_index = std::uint32_t;
using micro_batch_index = std::uint32_t;

}  // namespace shoal

template <class Tag>
struct std::hash<shoal::strong_id<Tag>> {
  std::size_t operator()(shoal::strong_id<Tag> id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value);
  }
};
