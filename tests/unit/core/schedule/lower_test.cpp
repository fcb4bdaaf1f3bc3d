// Executable lists of small plans, and the hash that ranks compare.
#include "core/schedule/lower.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "core/schedule/plan_hash.hpp"
#include "core/schedule/text.hpp"
#include "unit/core/schedule/made.hpp"

using namespace shoal;
using namespace shoal::core;

namespace {

std::string refused(const plan_options& options) {
  auto plan = make_plan(options);
  REQUIRE_FALSE(plan);
  CHECK(plan.error().code == errc::config);
  return plan.error().text;
}

}  // namespace

TEST_CASE("sends follow what they send, receives come before their use", "[core][schedule]") {
  auto plan = lower(made({.name = "1f1b", .ranks = 2, .micro_batches = 3}), {.norm = false});
  REQUIRE(plan);
  CHECK(text_of(plan->ranks[0]) ==
        "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0F2 0RECV_B1 0SEND_F2 0B1 0RECV_B2 0B2 "
        "0REDUCE_GRAD 0OPT 0MORPH_OK");
  CHECK(text_of(plan->ranks[1]) ==
        "1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1F1 1B1 1SEND_B1 1RECV_F2 1F2 1B2 1SEND_B2 "
        "1REDUCE_GRAD 1OPT 1MORPH_OK");
}

TEST_CASE("a stage held twice is summed when both holders are done", "[core][schedule]") {
  auto plan = lower(made({.name = "chimera", .ranks = 2, .micro_batches = 2})).value();
  for (auto& order : plan.ranks) {
    auto text = text_of(order);
    CHECK(text.find("0REDUCE_GRAD") != std::string::npos);
    CHECK(text.find("1REDUCE_GRAD") != std::string::npos);
  }
}

TEST_CASE("without a flush gradients are summed before each update", "[core][schedule]") {
  auto plan = lower(made({.name = "pipedream", .ranks = 2, .micro_batches = 2})).value();
  CHECK(text_of(plan.ranks[1]) ==
        "1RECV_F0 1F0@0 1RECV_F1 1B0@0 1SEND_B0 1REDUCE_GRAD 1OPT0@1 1DROP@0 1F1@1 1B1@1 1SEND_B1 "
        "1REDUCE_GRAD 1OPT1@2 1DROP@1 1MORPH_OK");
  auto bare = lower(made({.name = "pipedream", .ranks = 2, .micro_batches = 2}),
                    {.reduce = false, .morph_point = false});
  CHECK_THAT(csv_of(*bare), !Catch::Contains("REDUCE") && !Catch::Contains("MORPH"));
}

TEST_CASE("lowering refuses what it cannot lower", "[core][schedule]") {
  auto plan = made({.name = "1f1b", .ranks = 2, .micro_batches = 2});
  auto twice = lower(lower(plan).value());
  REQUIRE_FALSE(twice);
  CHECK_THAT(twice.error().text, Catch::Contains("it must hold compute cells only"));
  std::swap(plan.ranks[0][0], plan.ranks[0][2]);
  CHECK_THAT(lower(plan).error().text, Catch::Contains("rule 2 (dependencies), rank 0, cell 0"));
  auto costs = lower(made({}), {.costs = {cell_costs{.forward = 0}}});
  CHECK_THAT(costs.error().text, Catch::Contains("the nearest legal one is 1"));
}

TEST_CASE("a hash tells plans apart by anything that differs", "[core][schedule]") {
  auto plan = made({.name = "pipedream", .ranks = 2, .micro_batches = 4});
  std::set<std::uint64_t> hashes{plan_hash(plan)};
  auto differs = [&](auto change) {
    auto changed = plan;
    change(changed);
    return hashes.insert(plan_hash(changed)).second;
  };
  CHECK(differs([](auto& p) { p.name += "x"; }));
  CHECK(differs([](auto& p) { ++p.micro_batches; }));
  CHECK(differs([](auto& p) { ++p.batches; }));
  CHECK(differs([](auto& p) { p.placement[0][0] = 1; }));
  CHECK(differs([](auto& p) { p.chain_of = {0, 0, 0, 0}; }));
  CHECK(differs([](auto& p) { p.weights = weight_semantics::flush; }));
  CHECK(differs([](auto& p) { p.policy.opportunistic = true; }));
  CHECK(differs([](auto& p) { p.policy.live_max = 3; }));
  CHECK(differs([](auto& p) { std::swap(p.ranks[0], p.ranks[1]); }));
  for (std::size_t i = 0; i < plan.ranks[0].size(); ++i) {
    CHECK(differs([&](auto& p) { ++p.ranks[0][i].stage; }));
    CHECK(differs([&](auto& p) { ++p.ranks[0][i].micro_batch; }));
    CHECK(differs([&](auto& p) { ++p.ranks[0][i].version; }));
    CHECK(differs([&](auto& p) { ++p.ranks[0][i].group; }));
    CHECK(differs([&](auto& p) { p.ranks[0][i].what = operation::tie; }));
    CHECK(differs(
      [&](auto& p) { p.ranks[0].erase(p.ranks[0].begin() + static_cast<std::ptrdiff_t>(i)); }));
  }
  // Stable: other releases and machines must come to the same.
  CHECK(plan_hash(made({.name = "1f1b", .ranks = 2, .micro_batches = 2})) == 0x8145781de8a97821);
}

TEST_CASE("a schedule that cannot be is refused with the nearest that can", "[core][schedule]") {
  using Catch::Contains;
  CHECK_THAT(refused({.name = "interleaved"}),
             Contains("did you mean \"interleaved-1f1b\"") && Contains("\"gpipe\", \"1f1b\""));
  CHECK_THAT(refused({.name = "1F1B"}), Contains("did you mean \"1f1b\""));
  CHECK_THAT(refused({.name = "interleaved-1f1b", .ranks = 4, .chunks = 2, .micro_batches = 10}),
             Contains("cannot run with 10 micro-batches") &&
               Contains("the last group of 2 is smaller than the 4 ranks") &&
               Contains("the nearest legal number is 8 or 12."));
  CHECK_THAT(refused({.name = "interleaved-1f1b", .ranks = 4, .micro_batches = 3}),
             Contains("the nearest legal number is 4."));
  CHECK_THAT(refused({.name = "interleaved-1f1b", .ranks = 4, .micro_batches = 8, .group = 3}),
             Contains("3 micro-batches a group") && Contains("the nearest legal number is 4."));
  CHECK_THAT(refused({.name = "interleaved-1f1b", .ranks = 4, .chunks = 1, .micro_batches = 8}),
             Contains("the nearest legal number is 2."));
  CHECK_THAT(refused({.name = "gpipe", .ranks = 0}), Contains("the nearest legal number is 1."));
  CHECK_THAT(refused({.name = "gpipe", .ranks = 99999}), Contains("number is 4096."));
  CHECK_THAT(refused({.name = "gpipe", .ranks = 4096, .micro_batches = 65536}),
             Contains("the plan would be too long"));
  CHECK_THAT(refused({.name = "dualpipe", .ranks = 3, .micro_batches = 8}), Contains("2 or 4."));
  CHECK_THAT(refused({.name = "dualpipe", .ranks = 4, .micro_batches = 9}), Contains("8 or 10."));
  CHECK_THAT(refused({.name = "dualpipe-v", .ranks = 4, .micro_batches = 7}), Contains("is 8."));
  CHECK_THAT(refused({.name = "chimera", .ranks = 4, .micro_batches = 7}), Contains("6 or 8."));
  CHECK_THAT(refused({.name = "pipedream-2bw", .ranks = 4, .micro_batches = 3}), Contains("is 4."));
  CHECK_THAT(refused({.name = "pipedream", .ranks = 4, .micro_batches = 7, .replicas = {3, 1}}),
             Contains("6 or 9."));
  CHECK_THAT(refused({.name = "pipedream", .ranks = 5, .micro_batches = 6, .replicas = {3, 1}}),
             Contains("its stages have 4") && Contains("the nearest legal number is 4."));
  CHECK_THAT(refused({.name = "1f1b", .ranks = 3, .micro_batches = 9, .warm_up = {1, 2, 0}}),
             Contains("cannot run with 2 warm-ups on rank 1") && Contains("number is 1."));
  CHECK_THAT(refused({.name = "1f1b", .ranks = 3, .micro_batches = 9, .warm_up = {1}}),
             Contains("a vector has one for each rank"));
  CHECK_THAT(refused({.name = "varuna", .ranks = 3, .micro_batches = 9, .live_max = 5}),
             Contains("its list holds 6") && Contains("number is 6."));
  CHECK_THAT(
    refused(
      {.name = "pipedream", .ranks = 48, .micro_batches = 17017, .replicas = {7, 11, 13, 17}}),
    Contains("number is 4096."));
  CHECK_THAT(refused({.name = "gpipe", .warm_up = {1}}), Contains("has no use for \"warm_up\""));
  CHECK_THAT(refused({.name = "gpipe", .chunks = 2}), Contains("its placement has 1"));
  CHECK_THAT(refused({.name = "varuna", .ranks = 2, .costs = {cell_costs{}}}),
             Contains("costs are given for each rank"));
  CHECK_THAT(refused({.name = "varuna", .costs = {cell_costs{.forward = 0}}}),
             Contains("0 units of a cost") && Contains("number is 1."));
}
