#include "core/morph/recovery.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

using namespace shoal;
using namespace shoal::core;

namespace {

verdict word_on(std::uint64_t step) {
  verdict v;
  v.step = {step};
  v.learning_rate = 0.001 * static_cast<double>(step);
  return v;
}

/// A node at `step`, with a digest a block that depends on block and step alone.
standing at_step(std::uint64_t node, std::uint64_t step, std::vector<block_index> blocks) {
  standing s;
  s.from = {{node}, {1}};
  s.doing = activity::holding;
  s.applied = {step};
  if (step > 0) s.last_verdict = word_on(step);
  for (auto b : blocks) s.blocks.push_back({b, 1000 * step + b});
  return s;
}

standing with_sums(standing s) {
  s.has_sums = true;
  return s;
}

recovery_line find(std::vector<standing> standings, std::vector<step_id> checkpoints = {},
                   std::vector<distrust> distrusted = {}) {
  return find_recovery_line(
    {3, std::move(standings), std::move(checkpoints), std::move(distrusted)});
}

std::vector<node_id> nodes(std::initializer_list<std::uint64_t> ids) {
  std::vector<node_id> list;
  for (auto id : ids) list.push_back({id});
  return list;
}

}  // namespace

TEST_CASE("nobody holds anything: the job starts from its initial values", "[core][morph]") {
  auto line = find({at_step(1, 0, {}), at_step(2, 0, {})});
  CHECK(line.meet == step_id{0});
  CHECK(line.from_checkpoint);
  CHECK(line.holders[0].empty());
  CHECK_FALSE(line.roll_forward);
}

TEST_CASE("nobody holds anything, but a checkpoint exists: the newest is taken", "[core][morph]") {
  auto line = find({at_step(1, 0, {})}, {{10}, {30}, {20}});
  CHECK(line.meet == step_id{30});
  CHECK(line.from_checkpoint);
}

TEST_CASE("all hold the same step: all meet there, with all holders as sources", "[core][morph]") {
  auto line = find({at_step(1, 7, {0, 1}), at_step(2, 7, {2}), at_step(3, 7, {0, 1, 2})});
  CHECK(line.meet == step_id{7});
  CHECK_FALSE(line.from_checkpoint);
  CHECK(line.rolling.empty());
  CHECK(line.holders[0] == nodes({1, 3}));
  CHECK(line.holders[2] == nodes({2, 3}));
}

TEST_CASE("who has the sums of a decided step rolls forward", "[core][morph]") {
  auto line = find({with_sums(at_step(1, 7, {0, 1})), at_step(2, 8, {2})});
  CHECK(line.meet == step_id{8});
  REQUIRE(line.roll_forward);
  CHECK(*line.roll_forward == word_on(8));
  CHECK(line.rolling == nodes({1}));
  CHECK(line.holders[0] == nodes({1}));
  CHECK_FALSE(line.from_checkpoint);
}

TEST_CASE("sums without a verdict are of no use: the round is done again", "[core][morph]") {
  auto line = find({with_sums(at_step(1, 7, {0, 1})), with_sums(at_step(2, 7, {2}))});
  CHECK(line.meet == step_id{7});
  CHECK_FALSE(line.roll_forward);
  CHECK(line.rolling.empty());
}

TEST_CASE("a verdict that ends the job rolls nobody forward", "[core][morph]") {
  auto finished = at_step(2, 8, {2});
  finished.last_verdict = word_on(9);
  finished.last_verdict->what = decision::finish;
  auto line = find({with_sums(at_step(1, 8, {0, 1})), finished});
  CHECK(line.meet == step_id{8});
  CHECK_FALSE(line.roll_forward);
}

TEST_CASE("who is one step behind without the sums holds nothing", "[core][morph]") {
  auto line = find({at_step(1, 7, {0, 1, 2}), at_step(2, 8, {0, 1, 2})});
  CHECK(line.meet == step_id{8});
  CHECK(line.holders[0] == nodes({2}));
}

TEST_CASE("a block whose holders all died takes everyone back to the checkpoint", "[core][morph]") {
  auto line = find({at_step(1, 7, {0, 1})}, {{5}});
  CHECK(line.meet == step_id{5});
  CHECK(line.from_checkpoint);
  CHECK(line.holders[0].empty());
  CHECK(line.reason.find("step 7") != std::string::npos);
}

TEST_CASE("a checkpoint of the very step fills in what is missing", "[core][morph]") {
  auto line = find({at_step(1, 7, {0, 1})}, {{5}, {7}});
  CHECK(line.meet == step_id{7});
  CHECK(line.from_checkpoint);
  CHECK(line.holders[0] == nodes({1}));
  CHECK(line.holders[2].empty());
}

TEST_CASE("a straggler that is a step ahead alone does not throw the others back",
          "[core][morph]") {
  // Node 3 was cut off as its view decided step 8; the rest has begun the round anew since.
  auto line = find({at_step(1, 7, {0, 1}), at_step(2, 7, {2}), at_step(3, 8, {0})}, {{5}});
  CHECK(line.meet == step_id{7});
  CHECK_FALSE(line.from_checkpoint);
  CHECK(line.holders[0] == nodes({1}));
}

TEST_CASE("a checkpoint newer than all that is held whole wins", "[core][morph]") {
  auto line = find({at_step(1, 3, {0, 1, 2}), at_step(2, 9, {0})}, {{8}});
  CHECK(line.meet == step_id{8});
  CHECK(line.from_checkpoint);
}

TEST_CASE("a distrusted holder is no source, at that step only", "[core][morph]") {
  std::vector<standing> both{at_step(1, 7, {0, 1, 2}), at_step(2, 7, {0, 1, 2})};
  auto line = find(both, {}, {{{2}, 1, {7}}, {{1}, 0, {6}}});
  CHECK(line.holders[0] == nodes({1, 2}));
  CHECK(line.holders[1] == nodes({1}));
  CHECK(line.meet == step_id{7});
}

TEST_CASE("the odd one out is outvoted", "[core][morph]") {
  auto odd = at_step(3, 7, {0, 1, 2});
  odd.blocks[1].digest = 99;
  auto line = find({at_step(1, 7, {0, 1, 2}), at_step(2, 7, {0, 1, 2}), odd});
  CHECK(line.holders[1] == nodes({1, 2}));
  CHECK(line.holders[0] == nodes({1, 2, 3}));
  CHECK(line.outvoted == std::vector<distrust>{{{3}, 1, {7}}});
}

TEST_CASE("without a majority nobody is believed: one tier down", "[core][morph]") {
  auto odd = at_step(2, 7, {0, 1, 2});
  odd.blocks[2].digest = 99;
  auto line = find({at_step(1, 7, {0, 1, 2}), odd}, {{4}});
  CHECK(line.meet == step_id{4});
  CHECK(line.from_checkpoint);
}

TEST_CASE("outvoted names the minority, or everyone when there is no majority", "[core][morph]") {
  CHECK(outvoted({}).empty());
  CHECK(outvoted({{{1}, 5}}).empty());
  CHECK(outvoted({{{1}, 5}, {{2}, 5}}).empty());
  CHECK(outvoted({{{1}, 5}, {{2}, 6}, {{3}, 5}}) == nodes({2}));
  CHECK(outvoted({{{1}, 5}, {{2}, 6}}) == nodes({1, 2}));
  CHECK(outvoted({{{1}, 5}, {{2}, 5}, {{3}, 6}, {{4}, 6}}) == nodes({1, 2, 3, 4}));
}

// -- prepare messages -----------------------------------------------------------------------------

namespace {

member node_at(std::uint64_t id) { return {{{id}, {1}}, {"h", static_cast<std::uint16_t>(id), 0}}; }

/// Two replicas: 1:[0] 4:[1-2] and 5:[0-2]; nodes 1, 2 and 3 held everything before.
prepare_input two_replicas() {
  prepare_input input;
  input.term = {3};
  input.view = {9};
  input.shape.replicas = {{{{{1}, {0, 1}}, {{4}, {1, 3}}}, {0, 4}}, {{{{5}, {0, 3}}}, {4, 8}}};
  input.line = find({at_step(1, 7, {0, 1, 2}), at_step(2, 7, {0, 1, 2}), at_step(3, 7, {0, 1, 2})});
  for (auto id : {1, 2, 3, 4, 5, 6}) input.nodes.push_back(node_at(static_cast<std::uint64_t>(id)));
  return input;
}

prepare of(const std::vector<std::pair<node_id, prepare>>& made, std::uint64_t node) {
  return std::ranges::find(made, node_id{node}, [](auto& p) { return p.first; })->second;
}

}  // namespace

TEST_CASE("each node is told what it lacks, and where to get it", "[core][morph]") {
  auto made = make_prepares(two_replicas());
  REQUIRE(made.size() == 6);
  CHECK(of(made, 1).missing.empty());
  CHECK(of(made, 3).missing.empty());
  REQUIRE(of(made, 4).missing.size() == 2);
  CHECK(of(made, 4).missing[0].block == 1);
  REQUIRE(of(made, 5).missing.size() == 3);
  for (auto& m : of(made, 5).missing) CHECK(m.holders.size() == 3);
  CHECK(of(made, 5).view == view_id{9});
  CHECK(of(made, 5).term == term_id{3});
  CHECK(of(made, 5).step == step_id{7});
}

TEST_CASE("the load is spread over all holders", "[core][morph]") {
  auto made = make_prepares(two_replicas());
  std::map<node_id, int> first;
  for (auto id : {4, 5})
    for (auto& m : of(made, static_cast<std::uint64_t>(id)).missing) ++first[m.holders.front()];
  CHECK(first.size() == 3);
  for (auto& [node, count] : first) CHECK(count <= 2);
}

TEST_CASE("members are those of the layout and the sources, nobody else", "[core][morph]") {
  auto made = make_prepares(two_replicas());
  std::vector<node_id> members;
  for (auto& m : of(made, 4).members) members.push_back(m.who.node);
  CHECK(members == nodes({1, 2, 3, 4, 5}));
}

TEST_CASE("a source that failed before comes last", "[core][morph]") {
  auto input = two_replicas();
  input.strikes[{{5}, {2}}] = 1;
  for (auto& m : of(make_prepares(input), 5).missing) CHECK(m.holders.back() == node_id{2});
}

TEST_CASE("only those who have to roll forward are given the verdict", "[core][morph]") {
  auto input = two_replicas();
  input.line =
    find({with_sums(at_step(1, 6, {0, 1, 2})), at_step(2, 7, {0, 1, 2}), at_step(3, 6, {0, 1, 2})});
  auto made = make_prepares(input);
  CHECK(of(made, 1).roll_forward);
  CHECK_FALSE(of(made, 2).roll_forward);
  CHECK_FALSE(of(made, 3).roll_forward);
}

TEST_CASE("without holders the checkpoint is named, if there is one", "[core][morph]") {
  auto input = two_replicas();
  input.line = find({at_step(1, 0, {})}, {{6}});
  input.checkpoint_exists = true;
  auto made = make_prepares(input);
  CHECK(of(made, 1).checkpoint == step_id{6});
  REQUIRE(of(made, 1).missing.size() == 1);
  CHECK(of(made, 1).missing[0].holders.empty());
}
