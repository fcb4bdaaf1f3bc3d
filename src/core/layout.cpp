#include "core/layout.hpp"

#include <algorithm>
#include <functional>
#include <unordered_set>

namespace shoal::core {

bool block_runs::contains(block_index block) const {
  return std::ranges::any_of(chunks_, [&](auto& c) { return c.contains(block); });
}

std::uint32_t block_runs::size() const {
  std::uint32_t count = 0;
  for (auto& c : chunks_) count += c.size();
  return count;
}

std::vector<block_index> block_runs::all() const {
  std::vector<block_index> blocks;
  for (auto& c : chunks_)
    for (auto b = c.begin; b < c.end; ++b) blocks.push_back(b);
  return blocks;
}

bool find_place(const layout& shape, node_id node, place& found) {
  for (replica_index r = 0; r < shape.replicas.size(); ++r)
    for (stage_index s = 0; s < shape.replicas[r].stages.size(); ++s)
      if (shape.replicas[r].stages[s].node == node) {
        found = {r, s};
        return true;
      }
  return false;
}

std::uint32_t block_count_of(const replica& chain) {
  if (chain.stages.empty() || chain.stages.back().blocks.chunks().empty()) return 0;
  return chain.stages.back().blocks.chunks().back().end;
}

std::vector<node_id> nodes_of(const layout& shape) {
  std::vector<node_id> nodes;
  for (auto& chain : shape.replicas)
    for (auto& s : chain.stages) nodes.push_back(s.node);
  return nodes;
}

std::vector<node_id> holders_of(const layout& shape, block_index block) {
  std::vector<node_id> holders;
  for (auto& chain : shape.replicas)
    for (auto& s : chain.stages)
      if (s.blocks.contains(block)) holders.push_back(s.node);
  return holders;
}

namespace {

/// `next` must begin where the last range ended, and hold something.
bool follows(index_range next, std::uint32_t& reached) {
  if (next.begin != reached || next.end <= next.begin) return false;
  reached = next.end;
  return true;
}

}  // namespace

result<void> check(const layout& shape, std::uint32_t block_count, std::uint32_t micro_batch_count,
                   errc code) {
  auto wrong = [&](const std::string& what) {
    return error{code, "layout \"" + text_of(shape) + "\": " + what};
  };
  std::unordered_set<node_id> seen;
  std::uint32_t micro_batches = 0;
  for (auto& chain : shape.replicas) {
    std::uint32_t blocks = 0;
    for (auto& s : chain.stages) {
      if (!s.node || !seen.insert(s.node).second)
        return wrong("node " + std::to_string(s.node.value) + " holds two stages, or is nobody");
      if (s.blocks.chunks().size() != chain.chunk_count())
        return wrong("stages of one replica differ in their number of chunks");
    }
    for (std::uint32_t c = 0; c < chain.chunk_count(); ++c)
      for (auto& s : chain.stages)
        if (!follows(s.blocks.chunks()[c], blocks))
          return wrong("a stage is empty or does not begin where the one before it ends");
    if (!chain.ahead.empty() && chain.ahead.size() != chain.stages.size())
      return wrong("a replica says for " + std::to_string(chain.ahead.size()) + " of " +
                   std::to_string(chain.stages.size()) + " stages how far they run ahead");
    if (!std::ranges::is_sorted(chain.ahead, std::greater<>()))
      return wrong("a stage runs further ahead than the one before it");
    if (blocks != block_count)
      return wrong("a replica holds " + std::to_string(blocks) + " of " +
                   std::to_string(block_count) + " blocks");
    if (!follows(chain.micro_batches, micro_batches))
      return wrong("a replica has no micro-batches, or not those after its neighbour's");
  }
  if (micro_batches != micro_batch_count)
    return wrong("its replicas take " + std::to_string(micro_batches) + " of " +
                 std::to_string(micro_batch_count) + " micro-batches");
  return {};
}

std::string text_of(const block_runs& blocks) {
  std::string text;
  for (auto& c : blocks.chunks())
    text += (text.empty() ? "" : ",") + std::to_string(c.begin) + "-" + std::to_string(c.end - 1);
  return text;
}

std::string text_of(const layout& shape) {
  std::string text = std::to_string(shape.replicas.size()) +
                     (shape.replicas.size() == 1 ? " replica:" : " replicas:");
  for (std::size_t r = 0; r < shape.replicas.size(); ++r) {
    if (r != 0) text += " |";
    for (auto& s : shape.replicas[r].stages)
      text += " " + std::to_string(s.node.value) + ":[" + text_of(s.blocks) + "]" +
              (s.recompute ? "r" : "");
    text += " x" + std::to_string(shape.replicas[r].micro_batches.size());
  }
  if (shape.order != stage_order::as_job) text += ", " + std::string(to_string(shape.order));
  return text;
}

std::string_view to_string(stage_order order) {
  switch (order) {
    case stage_order::as_job:
      return "";
    case stage_order::one_f_one_b:
      return "1f1b";
    case stage_order::eager:
      return "1f1b-eager";
    case stage_order::gpipe:
      return "gpipe";
    case stage_order::searched:
      return "1f1b-searched";
    case stage_order::interleaved:
      return "interleaved-1f1b";
    case stage_order::varuna:
      return "varuna";
  }
  return "";
}

stage_order stage_order_of(std::string_view name) {
  for (auto order : stage_orders)
    if (name == to_string(order)) return order;
  return stage_order::as_job;
}

}  // namespace shoal::core
