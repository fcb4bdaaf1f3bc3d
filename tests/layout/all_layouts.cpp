#include "layout/all_layouts.hpp"

#include <algorithm>

namespace shoal::test {

namespace {

void extend(std::uint32_t left, std::uint32_t deepest, std::vector<std::uint32_t>& depths,
            std::vector<std::vector<std::uint32_t>>& all) {
  if (!depths.empty()) all.push_back(depths);
  for (auto depth = std::min(left, deepest); depth >= 1; --depth) {
    depths.push_back(depth);
    extend(left - depth, depth, depths, all);
    depths.pop_back();
  }
}

std::vector<core::index_range> cut(std::uint32_t total, std::uint32_t parts, split how) {
  std::vector<std::uint32_t> sizes(parts, 1);
  auto spare = total - parts;
  if (how == split::front_heavy) sizes.front() += spare;
  if (how == split::back_heavy) sizes.back() += spare;
  if (how == split::even)
    for (std::uint32_t i = 0; i < spare; ++i) ++sizes[i % parts];
  std::vector<core::index_range> ranges;
  std::uint32_t begin = 0;
  for (auto size : sizes) {
    ranges.push_back({begin, begin + size});
    begin += size;
  }
  return ranges;
}

}  // namespace

std::vector<std::vector<std::uint32_t>> all_depths(std::uint32_t nodes, std::uint32_t blocks) {
  std::vector<std::vector<std::uint32_t>> all;
  std::vector<std::uint32_t> depths;
  extend(nodes, blocks, depths, all);
  return all;
}

core::layout make_layout(const std::vector<std::uint32_t>& depths, split how, std::uint32_t blocks,
                         std::uint32_t micro_batches) {
  core::layout shape;
  std::uint64_t next_node = 1;
  auto shares = cut(micro_batches, static_cast<std::uint32_t>(depths.size()), how);
  for (std::size_t r = 0; r < depths.size(); ++r) {
    core::replica chain{{}, shares[r]};
    for (auto range : cut(blocks, depths[r], how))
      chain.stages.push_back({node_id{next_node++}, {range.begin, range.end}});
    shape.replicas.push_back(std::move(chain));
  }
  return shape;
}

}  // namespace shoal::test
