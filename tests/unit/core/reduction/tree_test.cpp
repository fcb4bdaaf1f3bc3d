#include "core/reduction/tree.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <string>

#include "unit/core/every_cut.hpp"

using namespace shoal;
using namespace shoal::core;

namespace {

/// The definition, written down once more and as plainly as can be: the sum of leaves [a, b).
std::string drawn(const reduction_tree& tree, std::uint32_t a, std::uint32_t b) {
  if (b - a > 1) {
    std::uint32_t half = 1;
    while (half * 2 < b - a) half *= 2;
    return "(" + drawn(tree, a, a + half) + "+" + drawn(tree, a + half, b) + ")";
  }
  auto g = a * tree.leaf;
  auto text = std::to_string(g);
  for (++g; g < std::min(b * tree.leaf, tree.micro_batches); ++g)
    text = "(" + text + "+" + std::to_string(g) + ")";
  return text;
}

std::string drawn(const reduction_tree& tree) {
  return drawn(tree, 0, (tree.micro_batches + tree.leaf - 1) / tree.leaf);
}

/// Runs the actions on expressions instead of gradients; a slot holds "" while it is free.
struct replica_sums {
  std::vector<std::string> slots;
  accumulation how;

  replica_sums(const reduction_tree& tree, index_range range) : how(accumulate(tree, range)) {
    slots.resize(how.slot_count);
    auto next = range.begin;
    for (auto& action : how.actions) {
      REQUIRE(action.slot < slots.size());
      auto& slot = slots[action.slot];
      if (action.what == reduction_action::kind::merge) {
        REQUIRE(action.micro_batch + 1 == next);
        REQUIRE(action.other != action.slot);
        auto& other = slots.at(action.other);
        REQUIRE((!slot.empty() && !other.empty()));
        slot = "(" + slot + "+" + other + ")";
        other.clear();
        continue;
      }
      REQUIRE(action.micro_batch == next++);
      auto gradient = std::to_string(action.micro_batch);
      REQUIRE(slot.empty() == (action.what == reduction_action::kind::start));
      slot = slot.empty() ? gradient : "(" + slot + "+" + gradient + ")";
    }
    REQUIRE(next == range.end);
  }
};

/// The total that replicas with these ranges arrive at.
std::string summed(const reduction_tree& tree, const std::vector<index_range>& ranges) {
  std::vector<index_range> pieces;
  std::vector<std::string> buffers;
  for (auto range : ranges) {
    replica_sums sums(tree, range);
    REQUIRE(sums.how.pieces.size() == sums.how.slots.size());
    REQUIRE(pieces_of(tree, range) == sums.how.pieces);
    auto reached = range.begin;
    for (std::size_t i = 0; i < sums.how.pieces.size(); ++i) {
      REQUIRE(sums.how.pieces[i].begin == reached);
      reached = sums.how.pieces[i].end;
      pieces.push_back(sums.how.pieces[i]);
      buffers.push_back(sums.slots[sums.how.slots[i]]);
    }
    REQUIRE(reached == range.end);
  }
  std::vector<int> taken(pieces.size(), 0);
  for (auto addition : finish(tree, pieces)) {
    REQUIRE(++taken.at(addition.from) == 1);
    REQUIRE(taken.at(addition.into) == 0);
    buffers[addition.into] = "(" + buffers[addition.into] + "+" + buffers[addition.from] + ")";
  }
  REQUIRE(std::accumulate(taken.begin(), taken.end(), 0u) == pieces.size() - 1);
  return buffers[0];
}

}  // namespace

TEST_CASE("the tree is the one of the picture", "[core][reduction]") {
  CHECK(drawn({4, 1}) == "((0+1)+(2+3))");
  CHECK(summed({8, 2}, {{0, 8}}) == "(((0+1)+(2+3))+((4+5)+(6+7)))");
  CHECK(summed({7, 3}, {{0, 7}}) == "((((0+1)+2)+((3+4)+5))+6)");
  CHECK(summed({5, 1}, {{0, 5}}) == "(((0+1)+(2+3))+4)");
  CHECK(summed({7, 1}, {{0, 7}}) == "(((0+1)+(2+3))+((4+5)+6))");
  CHECK(summed({3, 8}, {{0, 3}}) == "((0+1)+2)");
  CHECK(summed({1, 1}, {{0, 1}}) == "0");
}

TEST_CASE("every cut into replicas adds in the order of the one-piece tree", "[core][reduction]") {
  for (std::uint32_t n = 1; n <= 24; ++n)
    for (std::uint32_t leaf : {1u, 2u, 3u, 4u, 8u, 24u}) {
      reduction_tree tree{n, leaf};
      auto expected = drawn(tree);
      // Four ranges of all sizes where that is affordable, three elsewhere.
      for (std::uint32_t most = leaf <= 4 || n <= 12 ? 4 : 3, parts = 1; parts <= most; ++parts)
        for_each_cut(n, parts, [&](auto& ranges) {
          if (auto total = summed(tree, ranges); total != expected) {
            CAPTURE(n, leaf, ranges.size());
            REQUIRE(total == expected);
          }
        });
    }
}

TEST_CASE("pieces are as few as the tree allows", "[core][reduction]") {
  CHECK(accumulate({16, 2}, {0, 8}).pieces == std::vector<index_range>{{0, 8}});
  CHECK(accumulate({16, 2}, {0, 10}).pieces == std::vector<index_range>{{0, 8}, {8, 10}});
  CHECK(accumulate({16, 2}, {10, 16}).pieces == std::vector<index_range>{{10, 12}, {12, 16}});
  CHECK(accumulate({16, 4}, {1, 6}).pieces ==
        std::vector<index_range>{{1, 2}, {2, 3}, {3, 4}, {4, 6}});
  CHECK(accumulate({7, 1}, {4, 7}).pieces == std::vector<index_range>{{4, 7}});
}

TEST_CASE("few sums are in memory at once", "[core][reduction]") {
  for (std::uint32_t n : {1u, 2u, 5u, 16u, 63u, 64u, 65u, 500u, 2048u})
    for (std::uint32_t leaf : {1u, 2u, 7u, 32u}) {
      auto leaves = (n + leaf - 1) / leaf;
      auto levels = static_cast<std::uint32_t>(std::bit_width(leaves) - 1);
      CAPTURE(n, leaf);
      CHECK(accumulate({n, leaf}, {0, n}).slot_count <= levels + 2);
      CHECK(accumulate({n, leaf}, {0, n / 2 + 1}).slot_count <= levels + 2);
      for (auto begin = leaf; begin < n; begin += leaf * (1 + begin / 64))
        REQUIRE(accumulate({n, leaf}, {begin, n}).slot_count <= 2 * levels + 1);
      for (std::uint32_t begin = 1; begin + 1 < n; begin += 1 + n / 40)
        REQUIRE(accumulate({n, leaf}, {begin, n - 1}).slot_count <= 2 * levels + 1 + leaf);
    }
}

TEST_CASE("sums at once are counted without the way to them", "[core][reduction]") {
  for (std::uint32_t n = 1; n <= 40; ++n)
    for (std::uint32_t leaf : {1u, 2u, 3u, 8u})
      for (std::uint32_t begin = 0; begin < n; ++begin)
        for (auto end = begin + 1; end <= n; ++end) {
          CAPTURE(n, leaf, begin, end);
          REQUIRE(slot_count_of({n, leaf}, {begin, end}) ==
                  accumulate({n, leaf}, {begin, end}).slot_count);
        }
}

TEST_CASE("a merge is due as soon as its right half is complete", "[core][reduction]") {
  using kind = reduction_action::kind;
  auto how = accumulate({4, 1}, {0, 4});
  CHECK(how.actions == std::vector<reduction_action>{{kind::start, 0, 0, 0},
                                                     {kind::start, 1, 1, 0},
                                                     {kind::merge, 1, 0, 1},
                                                     {kind::start, 2, 1, 0},
                                                     {kind::start, 3, 2, 0},
                                                     {kind::merge, 3, 1, 2},
                                                     {kind::merge, 3, 0, 1}});
  CHECK(how.slot_count == 3);
}

TEST_CASE("losses are added in the order of the tree", "[core][reduction]") {
  // Numbers whose sum depends on the order: 1 is lost beside 2^53 unless it meets its like first.
  double big = 0x1p53;
  CHECK(tree_sum({4, 1}, {big, 1, 1, 1}) == (big + 1) + (1 + 1));
  CHECK(tree_sum({4, 4}, {big, 1, 1, 1}) == ((big + 1) + 1) + 1);
  CHECK(tree_sum({4, 2}, {1, 1, 1, big}) == (1 + 1) + (1 + big));
  CHECK(tree_sum({4, 1}, {big, 1, 1, 1}) != tree_sum({4, 4}, {big, 1, 1, 1}));
  CHECK(std::signbit(tree_sum({1, 1}, {-0.0})));
  CHECK(std::isnan(tree_sum({2, 1}, {1, std::nan("")})));
}

TEST_CASE("doubles added by replicas are the bits of tree_sum", "[core][reduction]") {
  reduction_tree tree{23, 3};
  std::vector<double> values;
  for (int i = 0; i < 23; ++i) values.push_back(std::sin(i * 1.7) * std::pow(10, i % 5));
  std::vector<index_range> pieces;
  std::vector<double> buffers;
  for (auto range : std::vector<index_range>{{0, 5}, {5, 14}, {14, 23}}) {
    auto how = accumulate(tree, range);
    std::vector<double> slots(how.slot_count);
    for (auto& a : how.actions) {
      if (a.what == reduction_action::kind::start) slots[a.slot] = values[a.micro_batch];
      if (a.what == reduction_action::kind::add) slots[a.slot] += values[a.micro_batch];
      if (a.what == reduction_action::kind::merge) slots[a.slot] += slots[a.other];
    }
    for (std::size_t i = 0; i < how.pieces.size(); ++i) {
      pieces.push_back(how.pieces[i]);
      buffers.push_back(slots[how.slots[i]]);
    }
  }
  for (auto a : finish(tree, pieces)) buffers[a.into] += buffers[a.from];
  CHECK(std::bit_cast<std::uint64_t>(buffers[0]) ==
        std::bit_cast<std::uint64_t>(tree_sum(tree, values)));
}
