// What the validator says of wrong schedules: the rule, the place, the nearest legal thing.
#include "core/schedule/validate_plan.hpp"

#include <catch2/catch.hpp>

#include "core/schedule/lower.hpp"
#include "core/schedule/plan_hash.hpp"
#include "core/schedule/text.hpp"
#include "unit/core/schedule/made.hpp"

using namespace shoal;
using namespace shoal::core;

namespace {

std::string refusal(const pipeline_plan& plan, const validation_limits& limits = {},
                    errc code = errc::config) {
  auto checked = validate_plan(plan, limits);
  REQUIRE_FALSE(checked);
  CHECK(checked.error().code == code);
  return checked.error().text;
}

/// A plan of two ranks from its rows, linear placement.
pipeline_plan rows(const std::string& csv) {
  auto plan = parse_csv(csv);
  if (!plan) FAIL(plan.error().text);
  return *plan;
}

void check_says(const std::string& text, const std::vector<std::string>& parts) {
  for (auto& part : parts) CHECK_THAT(text, Catch::Contains(part));
}

}  // namespace

TEST_CASE("an error names rule, place and the nearest legal thing", "[core][schedule]") {
  check_says(refusal(rows("0F0,0B0\n1F0\n")), {"rule 1 (counts)", "rank 1 lacks \"1B0\""});
  check_says(refusal(rows("0F0,0B0\n1F0,1B0,1W0\n")),
             {"rule 1 (counts), rank 1, cell 2 \"1W0\"", "keep one"});
  check_says(refusal(rows("0F0,0B0\n1F0,1I0\n")), {"lacks \"1W0\", which follows its I"});
  check_says(refusal(rows("0B0,0F0\n1F0,1B0\n")),
             {"rule 2 (dependencies), rank 0, cell 0 \"0B0\"", "\"0F0\", which comes later"});
  check_says(
    refusal(rows("0F0,0B0,0R0\n1F0,1B0\n")),
    {"rule 2 (dependencies), rank 0, cell 1 \"0B0\"", "it needs \"0R0\", which comes later"});
  auto moved = rows("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  std::swap(moved.ranks[0][2], moved.ranks[1][1]);
  check_says(refusal(moved), {"rule 3 (placement), rank 0, cell 2 \"1B0\"", "on rank 1"});
  moved.placement[0][1] = 7;
  check_says(refusal(moved), {"rule 3 (placement)", "the last rank is 1"});
  check_says(refusal(rows("(0F0;0B0)OVERLAP_F_B\n1F0,1B0\n")),
             {"rule 12 (groups), rank 0, cell 1", "must be independent"});
}

TEST_CASE("forward and backward of a micro-batch meet the same replica", "[core][schedule]") {
  auto plan = made({.name = "pipedream", .ranks = 3, .micro_batches = 4, .replicas = {2, 1}});
  auto& moved = plan.ranks[0];
  plan.ranks[1].push_back(moved.back());
  REQUIRE(moved[2] == cell{operation::backward, 0, 0, 0});
  plan.ranks[1].push_back(moved[2]);
  moved.erase(moved.begin() + 2);
  check_says(refusal(plan),
             {"rule 13 (routing), rank 1", "\"0B0@0\"", "micro-batch 0 finds stage 0 on rank 0"});
  plan.chain_of.pop_back();
  check_says(refusal(plan), {"rule 13 (routing)", "given for 3 micro-batches of 4"});
  auto capped = made({.name = "varuna", .ranks = 3, .micro_batches = 9});
  capped.policy.live_max = 5;
  check_says(refusal(capped), {"rule 6 (memory)", "rank 0 holds 6", "not 5"});
}

TEST_CASE("sends and receives must meet", "[core][schedule]") {
  check_says(refusal(rows("0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0\n")),
             {"rule 4 (channels)", "rank 1 lacks \"1SEND_B0\", which rank 0 needs"});
  check_says(refusal(rows("0F0,0SEND_F0,0B0\n1F0,1B0\n")),
             {"rule 4 (channels), rank 0, cell 1 \"0SEND_F0\"", "rank 1 lacks \"1RECV_F0\""});
  check_says(refusal(rows("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1RECV_F0,1B0,1SEND_B0\n")),
             {"rule 2 (dependencies), rank 1, cell 0 \"1F0\"", "\"1RECV_F0\", which comes later"});
  check_says(refusal(rows("0F0,0F1,0SEND_F0,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                          "1RECV_F1,1RECV_F0,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n")),
             {"rule 4 (channels), rank 1, cell 0 \"1RECV_F1\"",
              "the next to receive from it is \"1RECV_F0\""});
  auto last = rows("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0,1SEND_F0\n");
  check_says(refusal(last), {"rank 1, cell 4 \"1SEND_F0\"", "the chain ends at this stage"});
}

TEST_CASE("a deadlock is told as its shortest cycle", "[core][schedule]") {
  auto eager = rows(
    "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
    "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
  CHECK(validate_plan(eager, {.rendezvous = false}));
  CHECK_THAT(refusal(eager),
             Catch::Contains("rule 5 (cycles): the order deadlocks: ") &&
               Catch::Contains("rank 1 at \"1SEND_B0\" waits for rank 0's \"0RECV_B0\"") &&
               Catch::Contains("rank 0 at \"0SEND_F1\" waits for rank 1's \"1RECV_F1\""));
  auto crossed = rows("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
  CHECK(refusal(crossed) ==
        "rule 5 (cycles): the order deadlocks: rank 0 at \"0B0\" waits for rank 1's \"1B0\"; "
        "rank 1 at \"1F1\" waits for rank 0's \"0F1\".");
}

TEST_CASE("updates come when gradients are whole", "[core][schedule]") {
  auto say = [](const std::string& first, const std::string& second = "1F0,1B0,1F1,1B1,1OPT") {
    return refusal(rows("0F0,0F1,0B0," + first + "\n" + second + "\n"));
  };
  check_says(say("0OPT,0B1"), {"rule 10 (accumulation), rank 0, cell 3 \"0OPT\"", "1 of 2"});
  check_says(say("0B1"), {"rule 7 (updates)", "rank 0 lacks \"0OPT\""});
  check_says(say("0B1,0OPT,0OPT"),
             {"rank 0, cell 5 \"0OPT\"", "had all its updates; leave it out"});
  check_says(say("0REDUCE_GRAD,0B1,0OPT"), {"rule 7 (updates), rank 0, cell 3", "1 of 2"});
  check_says(say("0B1,0OPT", "1F0,1B0,1F1,1B1,1REDUCE_GRAD,1OPT"),
             {"rank 0, cell 4 \"0OPT\"", "\"0REDUCE_GRAD\" must come before it"});
  check_says(say("0B1,0OPT,0NORM", "1F0,1B0,1F1,1B1,1NORM,1OPT"), {"NORM must come before it"});
  check_says(refusal(rows("0F0,0F1,0B0,0B1,0OPT\n1F0,1B0,1F1,1B1,1OPT\n"), {.norm = true}),
             {"rule 7 (updates)", "no NORM before its OPT"});
  auto stash = made({.name = "pipedream", .ranks = 2, .micro_batches = 4});
  stash.ranks[0][3].micro_batch = 1;
  check_says(refusal(stash), {"the nearest legal cell is \"0OPT0@1\""});
}

TEST_CASE("versions of weights are those that the semantics say", "[core][schedule]") {
  auto plan = made({.name = "pipedream", .ranks = 2, .micro_batches = 4});
  auto changed = plan;
  changed.ranks[0][4].version = 0;
  check_says(refusal(changed), {"rule 6 (memory), rank 0, cell 4 \"0F2@0\"", "newest", "@1"});
  changed = plan;
  changed.ranks[0][5].version = 1;
  check_says(refusal(changed), {"\"0B1@1\"", "its forward pass read @0, so must it"});
  changed = plan;
  std::swap(changed.ranks[0][5], changed.ranks[0][6]);
  check_says(refusal(changed), {"version 0 was dropped at cell 5; drop it after cell 6"});
  changed = plan;
  changed.ranks[0].back().version = 4;
  check_says(refusal(changed), {"the newest version cannot be dropped"});
  auto two = made({.name = "pipedream-2bw", .ranks = 2, .micro_batches = 2, .batches = 4});
  std::erase_if(two.ranks[0], [](auto& c) { return c.what == operation::drop_version; });
  check_says(refusal(two), {"a third version would be alive; drop @0"});
  auto flush = rows("0F0,0B0\n1F0@1,1B0\n");
  check_says(refusal(flush), {"there is one version of the weights; leave it out"});
  auto bare = rows("0F0,0B0\n1F0,1B0\n");
  bare.weights = weight_semantics::stash;
  CHECK_FALSE(validate_plan(bare));
}

TEST_CASE("tied stages add their gradients before either changes", "[core][schedule]") {
  auto plan = made({.name = "1f1b", .ranks = 3, .micro_batches = 4});
  validation_limits limits{.ties = {{0, 2}}};
  auto lowered = lower(plan, {.ties = limits.ties}).value();
  CHECK(validate_plan(lowered, limits));
  CHECK_THAT(text_of(lowered.ranks[0]), Catch::Contains("0REDUCE_GRAD 0TIE 0NORM 0OPT 0MORPH_OK"));
  CHECK_THAT(text_of(lowered.ranks[1]), !Catch::Contains("TIE"));
  check_says(refusal(lower(plan).value(), limits),
             {"rule 8 (ties), rank 0", "\"0TIE\" must come before it"});
  check_says(refusal(lowered, {.ties = {{0, 1}}}), {"rule 8 (ties)"});
  auto v = lower(made({.name = "zb-v", .ranks = 2, .micro_batches = 4}), {.ties = {{0, 3}}});
  REQUIRE(v);
  CHECK(validate_plan(*v, {.ties = {{0, 3}}}));
  check_says(refusal(plan, {.ties = {{0, 9}}}), {"the last stage is 2"});
  check_says(refusal(plan, {.ties = {{0, 1}, {1, 2}}}), {"stage 1 is tied twice"});
  auto none_flush =
    lower(made({.name = "pipedream", .ranks = 2, .micro_batches = 2}), {.ties = {{0, 1}}});
  REQUIRE_FALSE(none_flush);
  CHECK_THAT(none_flush.error().text, Catch::Contains("need a flush"));
}

TEST_CASE("a morph point is where nothing is under way", "[core][schedule]") {
  auto say = [](const std::string& first, const std::string& second) {
    return refusal(rows(first + "\n" + second + "\n"));
  };
  check_says(say("0F0,0MORPH_OK,0B0", "1F0,1B0,1MORPH_OK"),
             {"rule 9 (morph points), rank 0, cell 1 \"0MORPH_OK\"", "1 micro-batches have no"});
  check_says(say("0F0,0B0,0MORPH_OK", "1F0,1B0"), {"rank 1 has 0 morph points"});
  check_says(say("0F0,0B0,0MORPH_OK,0OPT", "1F0,1B0,1OPT,1MORPH_OK"),
             {"1 gradients are not in an update yet"});
  check_says(say("0F0,0B0,0MORPH_OK,0F1,0B1", "1F0,1B0,1F1,1B1,1MORPH_OK"),
             {"rule 9 (morph points)", "after 0 morph points here, and after 1 elsewhere"});
}

TEST_CASE("memory is swept against budgets to the byte", "[core][schedule]") {
  auto plan = made({.name = "1f1b", .ranks = 2, .micro_batches = 4});
  stage_memory each{.input = 1, .stash = 10, .gradient = 100, .weights = 1000, .fixed = 10000};
  validation_limits limits{.memory = {each, each}};
  auto checked = validate_plan(plan, limits).value();
  // Two inputs and stashes, and the gradient that arrives; one of each at the last stage.
  CHECK(checked.ranks[0].bytes_peak == 11000 + 22 + 100);
  CHECK(checked.ranks[1].bytes_peak == 11000 + 11);
  CHECK(checked.ranks[0].warm_up == 2);
  limits.budgets = {11122, 11010};
  check_says(refusal(plan, limits, errc::no_memory),
             {"rule 6 (memory), rank 1, cell 0 \"1F0\"", "11011 bytes are live, 1 more than"});
  limits.budgets[1] = 11011;
  CHECK(validate_plan(plan, limits));
  // R: the stash lives from the recompute on. Messages wait at both ends.
  auto again = made({.name = "1f1b", .ranks = 2, .micro_batches = 4, .recompute = true});
  CHECK(validate_plan(again, limits)->ranks[0].bytes_peak == 11000 + 2 + 10 + 100);
  auto lowered = lower(plan).value();
  CHECK(validate_plan(lowered, {.memory = {each, each}})->ranks[0].bytes_peak >= 11122);
  auto stash = made({.name = "pipedream", .ranks = 2, .micro_batches = 4});
  CHECK(validate_plan(stash, {.memory = {each, each}})->ranks[0].bytes_peak == 12000 + 22 + 100);
  check_says(refusal(plan, {.memory = {each}}), {"given for 1; 2 are needed"});
}

TEST_CASE("facts beside the lists are checked", "[core][schedule]") {
  auto plan = made({.name = "1f1b", .ranks = 2, .micro_batches = 4});
  auto with_blocks = [&](std::vector<index_range> blocks) {
    return refusal(plan, {.blocks = std::move(blocks), .block_count = 8});
  };
  check_says(with_blocks({{0, 3}, {4, 8}}), {"rule 3", "must begin with block 3"});
  check_says(with_blocks({{0, 0}, {0, 8}}), {"every stage needs a block"});
  check_says(with_blocks({{0, 3}, {3, 7}}), {"the stages end with block 7 of 8"});
  CHECK(validate_plan(plan, {.blocks = {{0, 5}, {5, 8}}, .block_count = 8}));
  check_says(refusal(plan, {.samples = {4, 4, 4, 3}, .sample_count = 16}),
             {"rule 14 (denominators)", "divide by 15"});
  auto hash = plan_hash(plan);
  CHECK(validate_plan(plan, {.hashes = {hash, hash}})->hash == hash);
  check_says(refusal(plan, {.hashes = {hash, hash + 1}}),
             {"rule 15 (hash)", "rank 1 has the plan"});
  auto warned = validate_plan(plan, {.hop_time = 2, .turn_time = 3})->warnings;
  REQUIRE(warned.size() == 1);
  check_says(warned[0], {"rule 16 (warnings), rank 0 forwards 2", "4 would hide the hops"});
  CHECK(validate_plan(plan)->warnings.empty());
}
