#include "core/schedule/schedule.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

using namespace shoal;
using namespace shoal::core;

namespace {

constexpr const char* names[] = {"gpipe", "1f1b", "1f1b-eager"};

std::vector<std::string> drawn(const schedule_options& options) {
  std::vector<std::string> lines;
  auto made = generate(options);
  REQUIRE(made);
  for (auto& stage : made->stages) lines.push_back(text_of(stage));
  return lines;
}

std::vector<std::uint32_t> peaks(const schedule_options& options) {
  std::vector<std::uint32_t> all;
  auto made = generate(options);
  REQUIRE(made);
  for (auto& stage : made->stages) all.push_back(stash_peak(stage));
  return all;
}

/// The time at which the last action ends, when forward takes `f[s]` and backward `b[s]` on stage
/// s, and sending takes no time. Written apart from the validator: times, not readiness.
long makespan(const schedule& plan, const std::vector<long>& f, const std::vector<long>& b) {
  auto stage_count = plan.stages.size();
  std::vector<std::map<stage_action, long>> end(stage_count);
  std::vector<std::size_t> next(stage_count, 0);
  std::vector<long> clock(stage_count, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < stage_count; ++s) {
      if (next[s] == plan.stages[s].size()) continue;
      auto action = plan.stages[s][next[s]];
      long input = 0;
      bool back = action.kind == action_kind::backward;
      if (back ? s + 1 < stage_count : s > 0) {
        auto& giver = end[back ? s + 1 : s - 1];
        auto found = giver.find(action);
        if (found == giver.end()) continue;
        input = found->second;
      }
      clock[s] = std::max(clock[s], input) + (back ? b[s] : f[s]);
      end[s][action] = clock[s];
      ++next[s];
      moved = true;
    }
  }
  for (std::size_t s = 0; s < stage_count; ++s) REQUIRE(next[s] == plan.stages[s].size());
  return *std::max_element(clock.begin(), clock.end());
}

long makespan(const schedule_options& options, long f, long b) {
  return makespan(generate(options).value(), std::vector<long>(options.stage_count, f),
                  std::vector<long>(options.stage_count, b));
}

std::string refusal(const schedule& plan, const schedule_options& options) {
  auto checked = validate(plan, options);
  REQUIRE_FALSE(checked);
  CHECK(checked.error().code == errc::config);
  return checked.error().text;
}

}  // namespace

TEST_CASE("the schedules are those of the books", "[core][schedule]") {
  CHECK(drawn({.name = "1f1b", .stage_count = 3, .micro_batches = {0, 4}}) ==
        std::vector<std::string>{"F0 F1 F2 B0 F3 B1 B2 B3", "F0 F1 B0 F2 B1 F3 B2 B3",
                                 "F0 B0 F1 B1 F2 B2 F3 B3"});
  CHECK(drawn({.name = "gpipe", .stage_count = 2, .micro_batches = {4, 7}}) ==
        std::vector<std::string>{"F4 F5 F6 B4 B5 B6", "F4 F5 F6 B4 B5 B6"});
  CHECK(drawn({.name = "1f1b-eager", .stage_count = 3, .micro_batches = {0, 6}}) ==
        std::vector<std::string>{"F0 F1 F2 F3 F4 B0 F5 B1 B2 B3 B4 B5",
                                 "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 B4 B5",
                                 "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5"});
}

TEST_CASE("validation comes first, and alone in the closing round", "[core][schedule]") {
  CHECK(drawn({.stage_count = 2, .micro_batches = {2, 4}, .validation_micro_batches = {5, 7}}) ==
        std::vector<std::string>{"V5 V6 F2 F3 B2 B3", "V5 V6 F2 B2 F3 B3"});
  CHECK(drawn({.stage_count = 2, .validation_micro_batches = {0, 2}}) ==
        std::vector<std::string>{"V0 V1", "V0 V1"});
  CHECK(drawn({.stage_count = 2}) == std::vector<std::string>{"", ""});
}

TEST_CASE("recompute runs right before backward, and not on the last stage", "[core][schedule]") {
  CHECK(drawn({.stage_count = 2, .micro_batches = {0, 3}, .recompute = true}) ==
        std::vector<std::string>{"F0 F1 R0 B0 F2 R1 B1 R2 B2", "F0 B0 F1 B1 F2 B2"});
}

TEST_CASE("an unknown name is refused with the nearest one", "[core][schedule]") {
  auto made = generate({.name = "1f1b_eager"});
  REQUIRE_FALSE(made);
  CHECK(made.error().code == errc::config);
  CHECK_THAT(made.error().text, Catch::Contains("did you mean \"1f1b-eager\""));
  CHECK(stash_peak_of({.name = "1f1b_eager"}, 0).error().code == errc::config);
  CHECK_THAT(generate({.name = "Gpip"}).error().text, Catch::Contains("did you mean \"gpipe\""));
  CHECK_THAT(generate({.name = ""}).error().text,
             Catch::Contains("\"gpipe\", \"1f1b\", \"1f1b-eager\""));
}

TEST_CASE("every generated schedule is valid", "[core][schedule]") {
  for (auto name : names)
    for (stage_index stages = 1; stages <= 6; ++stages)
      for (std::uint32_t m = 0; m <= 16; ++m)
        for (std::uint32_t begin : {0u, 5u})
          for (std::uint32_t validation : {0u, 3u})
            for (bool recompute : {false, true}) {
              schedule_options options{.name = name,
                                       .stage_count = stages,
                                       .micro_batches = {begin, begin + m},
                                       .validation_micro_batches = {begin, begin + validation},
                                       .recompute = recompute};
              auto plan = generate(options);
              REQUIRE(plan);
              auto checked = validate(*plan, options);
              for (stage_index s = 0; s < stages; ++s)
                REQUIRE(stash_peak_of(options, s).value() == stash_peak(plan->stages[s]));
              CAPTURE(name, stages, m, begin, validation, recompute);
              if (!checked) FAIL(checked.error().text);
            }
}

TEST_CASE("GPipe stashes all micro-batches, 1F1B one for each stage that follows",
          "[core][schedule]") {
  for (stage_index p = 1; p <= 6; ++p)
    for (std::uint32_t m = 0; m <= 16; ++m)
      for (bool recompute : {false, true}) {
        auto gpipe = peaks(
          {.name = "gpipe", .stage_count = p, .micro_batches = {3, 3 + m}, .recompute = recompute});
        auto classic = peaks(
          {.name = "1f1b", .stage_count = p, .micro_batches = {3, 3 + m}, .recompute = recompute});
        auto eager = peaks({.name = "1f1b-eager",
                            .stage_count = p,
                            .micro_batches = {3, 3 + m},
                            .recompute = recompute});
        for (stage_index r = 0; r < p; ++r) {
          CHECK(gpipe[r] == m);
          CHECK(classic[r] == std::min(m, p - r));
          CHECK(eager[r] == std::min(m, 2 * (p - r) - 1));
        }
      }
}

TEST_CASE("with equal stages a flush takes (m+p-1)(f+b)", "[core][schedule]") {
  CHECK(makespan({.name = "1f1b", .stage_count = 4, .micro_batches = {0, 8}}, 1, 2) == 33);
  for (auto name : names)
    for (stage_index p : {1u, 2u, 3u, 4u, 6u, 8u})
      for (std::uint32_t m : {1u, 2u, p, 2 * p, 16u, 32u})
        for (long b : {1, 2, 3}) {
          CAPTURE(name, p, m, b);
          CHECK(makespan({.name = name, .stage_count = p, .micro_batches = {0, m}}, 1, b) ==
                long(m + p - 1) * (1 + b));
        }
}

TEST_CASE("with unequal stages a flush takes what the books say", "[core][schedule]") {
  std::vector<long> f{3, 7, 2, 5}, b{6, 11, 9, 4};
  long sum = 3 + 7 + 2 + 5 + 6 + 11 + 9 + 4;
  for (std::uint32_t m : {1u, 4u, 9u, 16u}) {
    schedule_options options{.name = "gpipe", .stage_count = 4, .micro_batches = {0, m}};
    CHECK(makespan(generate(options).value(), f, b) == sum + long(m - 1) * (7 + 11));
    options.name = "1f1b";
    auto took = makespan(generate(options).value(), f, b);
    CHECK(took <= sum + long(m - 1) * (7 + 11));
    long before = 0, bound = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      bound = std::max(bound, before + long(m) * (f[k] + b[k]));
      before += f[k] + b[k];
    }
    CHECK(took >= bound);
  }
}

TEST_CASE("an altered schedule is refused with stage and action", "[core][schedule]") {
  schedule_options options{.stage_count = 3,
                           .micro_batches = {2, 6},
                           .validation_micro_batches = {0, 2},
                           .recompute = true};
  const auto good = generate(options).value();
  REQUIRE(validate(good, options));

  SECTION("an action is dropped") {
    for (stage_index s = 0; s < 3; ++s)
      for (std::size_t i = 0; i < good.stages[s].size(); ++i) {
        auto bad = good;
        bad.stages[s].erase(bad.stages[s].begin() + long(i));
        if (good.stages[s][i].kind == action_kind::recompute) {  // kept in full instead: allowed
          CHECK(validate(bad, options));
          continue;
        }
        CHECK_THAT(refusal(bad, options), Catch::Contains("stage " + std::to_string(s)));
      }
  }
  SECTION("an action is doubled") {
    for (stage_index s = 0; s < 3; ++s)
      for (std::size_t i = 0; i < good.stages[s].size(); ++i) {
        auto bad = good;
        bad.stages[s].push_back(good.stages[s][i]);
        auto text = refusal(bad, options);
        CHECK_THAT(text, Catch::Contains("stage " + std::to_string(s) + ", " +
                                         text_of({good.stages[s][i]}) + ": it comes twice"));
      }
  }
  SECTION("a micro-batch of another replica") {
    auto bad = good;
    bad.stages[1].push_back({action_kind::forward, 6});
    CHECK_THAT(refusal(bad, options),
               Catch::Contains("stage 1, F6: this micro-batch is not the replica's"));
    bad = good;
    bad.stages[1].push_back({action_kind::validate, 2});
    CHECK_THAT(refusal(bad, options),
               Catch::Contains("stage 1, V2: this micro-batch is not the replica's"));
  }
  SECTION("backward before forward") {
    auto bad = good;
    auto& order = bad.stages[2];
    std::iter_swap(std::find(order.begin(), order.end(), stage_action{action_kind::forward, 3}),
                   std::find(order.begin(), order.end(), stage_action{action_kind::backward, 3}));
    CHECK_THAT(refusal(bad, options),
               Catch::Contains("stage 2, B3: its forward pass has not come yet"));
  }
  SECTION("backward passes out of order") {
    auto bad = generate({.name = "gpipe", .stage_count = 3, .micro_batches = {2, 6}}).value();
    for (auto& order : bad.stages) std::reverse(order.end() - 4, order.end());
    CHECK_THAT(refusal(bad, {.stage_count = 3, .micro_batches = {2, 6}}),
               Catch::Contains("stage 0, B5: backward passes must run in order"));
  }
  SECTION("recompute after backward, or before forward") {
    auto bad = good;
    auto& order = bad.stages[0];
    auto at = std::find(order.begin(), order.end(), stage_action{action_kind::recompute, 2});
    std::iter_swap(at, at + 1);
    CHECK_THAT(refusal(bad, options), Catch::Contains("stage 0, R2: its backward pass is over"));
    bad = good;
    auto& again = bad.stages[0];
    again.erase(std::find(again.begin(), again.end(), stage_action{action_kind::recompute, 5}));
    again.insert(again.begin(), {action_kind::recompute, 5});
    CHECK_THAT(refusal(bad, options),
               Catch::Contains("stage 0, R5: its forward pass has not come yet"));
  }
  SECTION("a stage is missing or too many") {
    auto bad = good;
    bad.stages.pop_back();
    CHECK_THAT(refusal(bad, options), Catch::Contains("has 2 stages, the replica 3"));
    bad = good;
    bad.stages.push_back(good.stages.back());
    CHECK_THAT(refusal(bad, options), Catch::Contains("has 4 stages, the replica 3"));
  }
}

TEST_CASE("a deadlock is found though each stage by itself is in order", "[core][schedule]") {
  // Stage 0 wants B0 before it forwards 1; stage 1 wants F1 before it gives B0.
  schedule_options options{.stage_count = 2, .micro_batches = {0, 2}};
  using k = action_kind;
  schedule bad{{{{k::forward, 0}, {k::backward, 0}, {k::forward, 1}, {k::backward, 1}},
                {{k::forward, 0}, {k::forward, 1}, {k::backward, 0}, {k::backward, 1}}}};
  CHECK_THAT(refusal(bad, options),
             Catch::Contains("stage 0, B0: deadlock: it waits for stage 1, which stands at F1"));

  // A cycle through validation.
  options.validation_micro_batches = {0, 1};
  schedule crossed{
    {{{k::validate, 0}, {k::forward, 0}, {k::forward, 1}, {k::backward, 0}, {k::validate, 0}}, {}}};
  crossed.stages[0] = {
    {k::forward, 0}, {k::backward, 0}, {k::validate, 0}, {k::forward, 1}, {k::backward, 1}};
  crossed.stages[1] = {
    {k::forward, 0}, {k::validate, 0}, {k::backward, 0}, {k::forward, 1}, {k::backward, 1}};
  CHECK_THAT(refusal(crossed, options), Catch::Contains("deadlock"));
  // Validation may come later where all agree.
  crossed.stages[1] = {
    {k::forward, 0}, {k::backward, 0}, {k::validate, 0}, {k::forward, 1}, {k::backward, 1}};
  CHECK(validate(crossed, options));
}

TEST_CASE("swapping any two neighbours is refused or harmless", "[core][schedule]") {
  // Whatever the validator lets pass must run to its end.
  for (auto name : names) {
    schedule_options options{.name = name, .stage_count = 3, .micro_batches = {0, 5}};
    auto good = generate(options).value();
    int refused = 0;
    for (stage_index s = 0; s < 3; ++s)
      for (std::size_t i = 0; i + 1 < good.stages[s].size(); ++i) {
        auto other = good;
        std::swap(other.stages[s][i], other.stages[s][i + 1]);
        if (validate(other, options))
          CHECK(makespan(other, {1, 1, 1}, {2, 2, 2}) >= 7 * 3);
        else
          ++refused;
      }
    CAPTURE(name);
    CHECK(refused > 0);
  }
}

TEST_CASE("validation micro-batches are shared out evenly and all", "[core][schedule]") {
  CHECK(validation_share(8, 0, 3) == index_range{0, 3});
  CHECK(validation_share(8, 1, 3) == index_range{3, 6});
  CHECK(validation_share(8, 2, 3) == index_range{6, 8});
  for (std::uint32_t total = 0; total <= 20; ++total)
    for (std::uint32_t count = 1; count <= 7; ++count) {
      std::uint32_t reached = 0, largest = 0, smallest = total;
      for (replica_index r = 0; r < count; ++r) {
        auto share = validation_share(total, r, count);
        REQUIRE(share.begin == reached);
        reached = share.end;
        largest = std::max(largest, share.size());
        smallest = std::min(smallest, share.size());
      }
      CHECK(reached == total);
      CHECK(largest - smallest <= 1);
    }
}
