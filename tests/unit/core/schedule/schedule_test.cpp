#include "core/schedule/schedule.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "core/schedule/validate_plan.hpp"

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

/// Counted along the order.
std::uint32_t stash_peak(const std::vector<stage_action>& stage) {
  std::uint32_t now = 0, peak = 0;
  for (auto action : stage) {
    if (action.kind == action_kind::forward) peak = std::max(peak, ++now);
    if (action.kind == action_kind::backward) {
      REQUIRE(now > 0);
      --now;
    }
  }
  return peak;
}

std::vector<std::uint32_t> peaks(const schedule_options& options) {
  std::vector<std::uint32_t> all;
  auto made = generate(options);
  REQUIRE(made);
  for (auto& stage : made->stages) all.push_back(stash_peak(stage));
  return all;
}

/// The time at which the last action ends, when forward takes `f[s]` and backward `b[s]` on stage
/// s, and sending takes no time.
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
  CHECK(drawn({.stage_count = 2, .micro_batches = {0, 3}, .recompute = {true, true}}) ==
        std::vector<std::string>{"F0 F1 R0 B0 F2 R1 B1 R2 B2", "F0 B0 F1 B1 F2 B2"});
}

TEST_CASE("stages may recompute one by one", "[core][schedule]") {
  schedule_options options{
    .stage_count = 3, .micro_batches = {0, 3}, .recompute = {false, true, false}};
  CHECK(drawn(options) == std::vector<std::string>{"F0 F1 F2 B0 B1 B2",
                                                   "F0 F1 R0 B0 F2 R1 B1 R2 B2",
                                                   "F0 B0 F1 B1 F2 B2"});
  CHECK(validate_plan(plan_of(options).value()));
  job_options job;
  stage one{.recompute = true};
  for (auto rule : {recompute_rule::never, recompute_rule::always, recompute_rule::as_needed}) {
    job.training.recompute = rule;
    CHECK(recomputes(one, job) == (rule != recompute_rule::never));
    CHECK(recomputes(stage{}, job) == (rule == recompute_rule::always));
  }
}

TEST_CASE("an unknown name is refused with the nearest one", "[core][schedule]") {
  auto made = generate({.name = "1f1b_eager"});
  REQUIRE_FALSE(made);
  CHECK(made.error().code == errc::config);
  CHECK_THAT(made.error().text, Catch::Contains("did you mean \"1f1b-eager\""));
  CHECK(stash_peaks_of({.name = "1f1b_eager"}).error().code == errc::config);
  CHECK_THAT(generate({.name = "Gpip"}).error().text, Catch::Contains("did you mean \"gpipe\""));
  CHECK_THAT(generate({.name = ""}).error().text,
             Catch::Contains("\"1f1b\", \"interleaved-1f1b\", \"1f1b-eager\""));
}

TEST_CASE("every schedule follows a valid plan, and each block's gradients come in order",
          "[core][schedule]") {
  for (auto order : stage_orders)
    for (stage_index stages = 1; stages <= 6; ++stages)
      for (std::uint32_t m = 0; m <= 16; ++m)
        for (std::uint32_t chunks : {1u, 2u, 3u})
          for (bool recompute : {false, true}) {
            auto name = to_string(order);
            if (chunks > 1 && (order != stage_order::interleaved || stages == 1)) continue;
            if (order == stage_order::varuna && !recompute) continue;
            schedule_options options{.name = name,
                                     .stage_count = stages,
                                     .micro_batches = {5, 5 + m},
                                     .validation_micro_batches = {5, 8},
                                     .recompute = std::vector<bool>(stages, recompute),
                                     .chunks = chunks};
            if (order == stage_order::searched)
              for (stage_index s = 0; s < stages; ++s)
                options.ahead.push_back(3 * (stages - 1 - s));
            CAPTURE(name, stages, m, chunks, recompute);
            auto made = generate(options);
            REQUIRE(made);
            auto peaks = stash_peaks_of(options).value();
            REQUIRE(peaks.size() == stages);
            for (stage_index s = 0; s < stages; ++s) {
              auto peak = stash_peak(made->stages[s]);
              auto closed = peaks[s];
              if (order == stage_order::varuna && options.ahead.empty())
                CHECK(closed == m);  // no limit
              else
                CHECK(closed == peak);
              options.ahead.resize(order == stage_order::searched ? stages : 0);
              std::map<std::uint32_t, micro_batch_index> next;
              for (auto& a : made->stages[s])
                if (a.kind == action_kind::backward) CHECK(a.micro_batch == 5 + next[a.chunk]++);
              for (std::uint32_t c = 0; c < chunks && m > 0; ++c) CHECK(next[c] == m);
            }
            if (m == 0) continue;
            auto checked = validate_plan(plan_of(options).value());
            if (!checked) FAIL(checked.error().text);
          }
}

TEST_CASE("Varuna's list holds what the closed form says", "[core][schedule]") {
  for (stage_index p = 1; p <= 8; ++p)
    for (std::uint32_t m = 1; m <= 40; ++m) {
      schedule_options options{.name = "varuna",
                               .stage_count = p,
                               .micro_batches = {0, m},
                               .recompute = std::vector<bool>(p, true)};
      auto made = generate(options).value();
      options.ahead.assign(p, 0);
      auto peaks = stash_peaks_of(options).value();
      for (stage_index s = 0; s < p; ++s) {
        CAPTURE(p, m, s);
        CHECK(stash_peak(made.stages[s]) <= peaks[s]);
      }
    }
}

TEST_CASE("GPipe stashes all micro-batches, 1F1B one for each stage that follows",
          "[core][schedule]") {
  for (stage_index p = 1; p <= 6; ++p)
    for (std::uint32_t m = 0; m <= 16; ++m)
      for (bool recompute : {false, true}) {
        std::vector<bool> again(p, recompute);
        auto gpipe = peaks(
          {.name = "gpipe", .stage_count = p, .micro_batches = {3, 3 + m}, .recompute = again});
        auto classic = peaks(
          {.name = "1f1b", .stage_count = p, .micro_batches = {3, 3 + m}, .recompute = again});
        auto eager = peaks({.name = "1f1b-eager",
                            .stage_count = p,
                            .micro_batches = {3, 3 + m},
                            .recompute = again});
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

TEST_CASE("interleaved: chunks take turns, validation goes chunk by chunk", "[core][schedule]") {
  CHECK(drawn({.name = "interleaved-1f1b",
               .stage_count = 2,
               .micro_batches = {4, 6},
               .validation_micro_batches = {0, 2},
               .chunks = 2}) ==
        std::vector<std::string>{"V0 V1 V0.1 V1.1 F4 F5 F4.1 F5.1 B4.1 B5.1 B4 B5",
                                 "V0 V1 V0.1 V1.1 F4 F5 F4.1 B4.1 F5.1 B5.1 B4 B5"});
  CHECK(drawn({.name = "interleaved-1f1b", .stage_count = 2, .micro_batches = {0, 3}}) ==
        drawn({.name = "1f1b", .stage_count = 2, .micro_batches = {0, 3}}));
  auto wrong = generate({.name = "1f1b", .stage_count = 2, .micro_batches = {0, 3}, .chunks = 2});
  REQUIRE_FALSE(wrong);
  CHECK_THAT(wrong.error().text, Catch::Contains("interleaved-1f1b"));
}

TEST_CASE("a searched warm-up is followed, and no order that would wait for itself is made",
          "[core][schedule]") {
  schedule_options options{
    .name = "1f1b-searched", .stage_count = 3, .micro_batches = {0, 4}, .ahead = {3, 1, 0}};
  CHECK(drawn(options) == std::vector<std::string>{"F0 F1 F2 F3 B0 B1 B2 B3",
                                                   "F0 F1 B0 F2 B1 F3 B2 B3",
                                                   "F0 B0 F1 B1 F2 B2 F3 B3"});
  options.ahead = {0, 1, 0};
  CHECK_FALSE(generate(options));
}

TEST_CASE("Varuna's list is run opportunistically, and needs recompute", "[core][schedule]") {
  auto made = generate({.name = "varuna",
                        .stage_count = 4,
                        .micro_batches = {0, 5},
                        .recompute = std::vector<bool>(4, true),
                        .ahead = {9, 5, 4, 1}});
  REQUIRE(made);
  CHECK(made->opportunistic);
  CHECK(made->live_max == std::vector<std::uint32_t>{9, 5, 4, 1});
  CHECK(text_of(made->stages[2]) == "F0 F1 F2 R0 B0 R1 B1 R2 B2 F3 F4 R3 B3 R4 B4");
  CHECK_THAT(generate({.name = "varuna", .stage_count = 2}).error().text,
             Catch::Contains("recompute = true"));
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
