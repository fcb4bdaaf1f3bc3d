#include "core/layout.hpp"

#include <catch2/catch.hpp>

using namespace shoal;
using namespace shoal::core;

namespace {

/// The layout of the picture in layout.hpp: 8 blocks, 16 micro-batches.
layout picture() {
  return {
    {{{{node_id{1}, {0, 4}}, {node_id{2}, {4, 8}}}, {0, 10}}, {{{node_id{3}, {0, 8}}}, {10, 16}}}};
}

/// Two chunks a stage.
layout chunked() {
  layout shape;
  shape.replicas = {
    {{{node_id{1}, block_runs({{0, 2}, {4, 6}})}, {node_id{2}, block_runs({{2, 4}, {6, 8}})}},
     {0, 16}}};
  shape.order = stage_order::interleaved;
  return shape;
}

std::string refusal(const layout& shape, errc code = errc::protocol) {
  auto checked = check(shape, 8, 16, code);
  REQUIRE_FALSE(checked);
  CHECK(checked.error().code == code);
  return checked.error().text;
}

}  // namespace

TEST_CASE("nodes, places and holders are read off the layout", "[core][layout]") {
  auto shape = picture();
  place found;
  REQUIRE(find_place(shape, node_id{2}, found));
  CHECK(found == place{0, 1});
  REQUIRE(find_place(shape, node_id{3}, found));
  CHECK(found == place{1, 0});
  CHECK_FALSE(find_place(shape, node_id{4}, found));
  CHECK(nodes_of(shape) == std::vector<node_id>{{1}, {2}, {3}});
  CHECK(holders_of(shape, 0) == std::vector<node_id>{{1}, {3}});
  CHECK(holders_of(shape, 4) == std::vector<node_id>{{2}, {3}});
  CHECK(holders_of(shape, 8).empty());
  CHECK(text_of(shape) == "2 replicas: 1:[0-3] 2:[4-7] x10 | 3:[0-7] x6");
}

TEST_CASE("a sound layout passes", "[core][layout]") {
  CHECK(check(picture(), 8, 16, errc::internal));
  CHECK(check(chunked(), 8, 16, errc::internal));
}

TEST_CASE("a stage's chunks lie between those of the others", "[core][layout]") {
  auto shape = chunked();
  auto& first = shape.replicas[0].stages[0].blocks;
  CHECK(first.all() == std::vector<block_index>{0, 1, 4, 5});
  CHECK(first.size() == 4);
  CHECK(first.contains(4));
  CHECK_FALSE(first.contains(2));
  CHECK(shape.replicas[0].chunk_count() == 2);
  CHECK(block_count_of(shape.replicas[0]) == 8);
  CHECK(block_count_of(replica{}) == 0);
  CHECK(holders_of(shape, 6) == std::vector<node_id>{{2}});
  CHECK(text_of(shape) == "1 replica: 1:[0-1,4-5] 2:[2-3,6-7] x16, interleaved-1f1b");
}

TEST_CASE("orders have the names of the job file", "[core][layout]") {
  for (auto order : stage_orders) CHECK(stage_order_of(to_string(order)) == order);
  CHECK(stage_order_of("auto") == stage_order::as_job);
  CHECK(stage_order_of("") == stage_order::as_job);
}

TEST_CASE("a broken layout is refused with the caller's code and the reason", "[core][layout]") {
  SECTION("a node twice") {
    auto shape = picture();
    shape.replicas[1].stages[0].node = node_id{1};
    CHECK_THAT(refusal(shape, errc::internal), Catch::Contains("node 1 holds two stages"));
  }
  SECTION("nobody") {
    auto shape = picture();
    shape.replicas[1].stages[0].node = {};
    CHECK_THAT(refusal(shape), Catch::Contains("is nobody"));
  }
  SECTION("a gap, an overlap and an empty stage") {
    for (auto range :
         {index_range{5, 8}, index_range{3, 8}, index_range{4, 4}, index_range{4, 2}}) {
      auto shape = picture();
      shape.replicas[0].stages[1].blocks = {range.begin, range.end};
      CHECK_THAT(refusal(shape), Catch::Contains("does not begin where the one before it ends"));
    }
  }
  SECTION("too few and too many blocks") {
    for (std::uint32_t end : {7u, 9u}) {
      auto shape = picture();
      shape.replicas[1].stages[0].blocks = {0, end};
      CHECK_THAT(refusal(shape), Catch::Contains("holds " + std::to_string(end) + " of 8 blocks"));
    }
  }
  SECTION("micro-batches missing, out of order or none") {
    for (auto range : {index_range{11, 16}, index_range{9, 16}, index_range{10, 10}}) {
      auto shape = picture();
      shape.replicas[1].micro_batches = range;
      CHECK_THAT(refusal(shape), Catch::Contains("micro-batches"));
    }
    auto shape = picture();
    shape.replicas[1].micro_batches.end = 15;
    CHECK_THAT(refusal(shape), Catch::Contains("take 15 of 16 micro-batches"));
  }
  SECTION("chunks that do not follow one another, or not everywhere") {
    auto shape = chunked();
    shape.replicas[0].stages[0].blocks = block_runs({{0, 2}, {5, 6}});
    CHECK_THAT(refusal(shape), Catch::Contains("does not begin where the one before it ends"));
    shape.replicas[0].stages[0].blocks = block_runs({{0, 2}});
    CHECK_THAT(refusal(shape), Catch::Contains("differ in their number of chunks"));
    for (auto& s : shape.replicas[0].stages) s.blocks = {};
    CHECK_THAT(refusal(shape), Catch::Contains("holds 0 of 8 blocks"));
  }
  SECTION("how far stages run ahead does not fit them") {
    auto shape = chunked();
    shape.replicas[0].ahead = {1};
    CHECK_THAT(refusal(shape), Catch::Contains("1 of 2 stages how far they run ahead"));
    shape.replicas[0].ahead = {1, 2};
    CHECK_THAT(refusal(shape), Catch::Contains("runs further ahead than the one before it"));
    shape.replicas[0].ahead = {2, 2};
    CHECK(check(shape, 8, 16, errc::protocol));
  }
  SECTION("a replica without stages, and no replica at all") {
    auto shape = picture();
    shape.replicas[1].stages.clear();
    CHECK_THAT(refusal(shape), Catch::Contains("holds 0 of 8 blocks"));
    CHECK_THAT(refusal(layout{}), Catch::Contains("take 0 of 16 micro-batches"));
  }
}
