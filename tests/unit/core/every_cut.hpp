#pragma once
// All cuts there are: what rules and partitioners are held against.

#include <cstdint>
#include <utility>
#include <vector>

#include "core/layout.hpp"

namespace shoal::core {

namespace every_cut {

template <class Use>
void extend(std::vector<index_range>& so_far, std::uint32_t count, std::uint32_t parts, Use& use) {
  auto begin = so_far.empty() ? 0 : so_far.back().end;
  if (parts == 1) {
    so_far.push_back({begin, count});
    use(std::as_const(so_far));
    so_far.pop_back();
    return;
  }
  for (auto border = begin + 1; border + parts - 1 <= count; ++border) {
    so_far.push_back({begin, border});
    extend(so_far, count, parts - 1, use);
    so_far.pop_back();
  }
}

}  // namespace every_cut

/// Calls `use` with every cut of [0, count) into `parts` ranges, none empty.
template <class Use>
void for_each_cut(std::uint32_t count, std::uint32_t parts, Use use) {
  std::vector<index_range> so_far;
  if (parts >= 1 && parts <= count) every_cut::extend(so_far, count, parts, use);
}

/// Into any number of ranges.
template <class Use>
void for_each_cut(std::uint32_t count, Use use) {
  for (std::uint32_t parts = 1; parts <= count; ++parts) for_each_cut(count, parts, use);
}

}  // namespace shoal::core
