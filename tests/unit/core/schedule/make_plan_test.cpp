// Known answers of the generators: orders, makespans and peaks of the books.
#include "core/schedule/make_plan.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "core/schedule/text.hpp"
#include "unit/core/schedule/made.hpp"

using namespace shoal;
using namespace shoal::core;

namespace {

std::uint64_t makespan(const pipeline_plan& plan, const cell_costs& costs = {}) {
  cell_index index(plan);
  auto times = unroll(plan, index, std::vector<cell_costs>(plan.ranks.size(), costs));
  if (!times) FAIL(times.error().text);
  std::uint64_t end = 0;
  for (auto& time : *times) end = std::max(end, time.end);
  return end;
}

/// From the first cell's begin to the last one's end, on the rank where that is longest.
std::uint64_t longest_span(const pipeline_plan& plan, const cell_costs& costs) {
  cell_index index(plan);
  auto times = unroll(plan, index, std::vector<cell_costs>(plan.ranks.size(), costs)).value();
  std::uint64_t longest = 0;
  for (rank_index r = 0; r < plan.rank_count(); ++r)
    longest = std::max(longest, times[index.number(r, plan.ranks[r].size() - 1)].end -
                                  times[index.number(r, 0)].begin);
  return longest;
}

/// Most micro-batches forwarded and not finished (B or W), over all virtual stages of a rank.
std::vector<std::uint32_t> peaks(const pipeline_plan& plan) {
  std::vector<std::uint32_t> all;
  for (auto& order : plan.ranks) {
    std::uint32_t now = 0, peak = 0;
    for (auto& c : order) {
      if (c.what == operation::forward) peak = std::max(peak, ++now);
      if (c.what == operation::backward || c.what == operation::weight_gradient) --now;
    }
    all.push_back(peak);
  }
  return all;
}

using list = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("GPipe and 1F1B take (m+p-1)(f+b) and hold what the books say", "[core][schedule]") {
  for (std::uint32_t p : {2u, 4u, 8u})
    for (std::uint32_t m : {p, 2 * p, 32u}) {
      CAPTURE(p, m);
      for (auto name : {"gpipe", "1f1b", "1f1b-eager"})
        CHECK(makespan(made({.name = name, .ranks = p, .micro_batches = m})) == (m + p - 1) * 3);
      for (rank_index r = 0; r < p; ++r) {
        CHECK(peaks(made({.name = "gpipe", .ranks = p, .micro_batches = m}))[r] == m);
        CHECK(peaks(made({.name = "1f1b", .ranks = p, .micro_batches = m}))[r] ==
              std::min(m, p - r));
        CHECK(peaks(made({.name = "1f1b-eager", .ranks = p, .micro_batches = m}))[r] ==
              std::min(m, 2 * (p - r) - 1));
      }
    }
}

TEST_CASE("interleaved 1F1B divides the bubble by the chunks", "[core][schedule]") {
  auto span = [](std::uint32_t p, std::uint32_t v, std::uint32_t m) {
    auto plan = made({.name = "interleaved-1f1b", .ranks = p, .chunks = v, .micro_batches = m});
    CHECK(peaks(plan)[0] == std::min(m * v, 2 * (p - 1) + (v - 1) * p + 1));
    for (rank_index r = 0; r < p; ++r)
      CHECK(peaks(plan)[r] == std::min(m * v, 2 * (p - 1 - r) + (v - 1) * p + 1));
    return static_cast<double>(makespan(plan)) / v;
  };
  CHECK(span(4, 2, 8) == 28.5);
  CHECK(span(8, 4, 32) == 101.25);
  CHECK(span(12, 4, 48) == 152.25);
  span(4, 2, 4);
  for (auto v : {2u, 3u})
    CHECK(makespan(made({.name = "looped-bfs", .ranks = 4, .chunks = v, .micro_batches = 8})) ==
          8 * 3 * v + 3 * 3);
}

TEST_CASE("interleaved 1F1B walks chunks in groups", "[core][schedule]") {
  auto plan = made({.name = "interleaved-1f1b", .ranks = 2, .chunks = 2, .micro_batches = 4});
  CHECK(text_of(plan.ranks[0]) ==
        "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3");
  CHECK(text_of(plan.ranks[1]) ==
        "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3");
  auto wide =
    made({.name = "interleaved-1f1b", .ranks = 2, .chunks = 2, .micro_batches = 5, .group = 3});
  CHECK(text_of(wide.ranks[1]).substr(0, 27) == "1F0 1F1 1F2 3F0 3B0 3F1 3B1");
}

TEST_CASE("Varuna's list is the published one", "[core][schedule]") {
  auto plan = made({.name = "varuna", .ranks = 4, .micro_batches = 5});
  CHECK(text_of(plan.ranks[2]) == "2F0 2F1 2F2 2R0 2B0 2R1 2B1 2R2 2B2 2F3 2F4 2R3 2B3 2R4 2B4");
  CHECK(text_of(plan.ranks[3]) == "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4");
  CHECK(text_of(plan.ranks[0]) == "0F0 0F1 0F2 0F3 0F4 0R0 0B0 0R1 0B1 0R2 0B2 0R3 0B3 0R4 0B4");
  CHECK(plan.policy.opportunistic);
  CHECK(makespan(plan) == 27);
  CHECK(makespan(made({.name = "varuna-static", .ranks = 3, .micro_batches = 5})) == 24);
  CHECK(makespan(made({.name = "varuna", .ranks = 4, .micro_batches = 8})) == 39);
  CHECK(makespan(made({.name = "varuna", .ranks = 8, .micro_batches = 32})) == 147);
  CHECK(makespan(made({.name = "varuna", .ranks = 12, .micro_batches = 40})) == 192);
  for (std::uint32_t p = 2; p <= 12; ++p)
    for (std::uint32_t m = 1; m <= 40; ++m) {
      CAPTURE(p, m);
      CHECK(makespan(made({.name = "varuna", .ranks = p, .micro_batches = m})) ==
            4 * m + 3 * (p - 2) + (3 - m % 3) % 3);
    }
}

TEST_CASE("Varuna stashes three inputs for each stage that follows", "[core][schedule]") {
  auto stash = peaks(made({.name = "varuna", .ranks = 49, .micro_batches = 683}));
  CHECK(stash[0] == 144);
  CHECK(stash[24] == 72);
  CHECK(stash[47] == 3);
  CHECK(stash[48] == 1);
}

TEST_CASE("recompute that starts before the gradient arrives hides a hop", "[core][schedule]") {
  auto early = [](std::uint32_t p, std::uint32_t m) {
    return makespan(made({.name = "1f1b", .ranks = p, .micro_batches = m, .recompute = true}));
  };
  CHECK(early(8, 32) == 147);
  CHECK(early(8, 64) == 275);
}

TEST_CASE("zero-bubble schedules have the spans and peaks of their paper", "[core][schedule]") {
  auto h1 = made({.name = "zb-h1", .ranks = 8, .micro_batches = 32});
  auto tenths = [](std::uint32_t f, std::uint32_t i, std::uint32_t w) {
    return cell_costs{.forward = f, .input_gradient = i, .weight_gradient = w};
  };
  CHECK(makespan(h1, tenths(10, 10, 10)) == 1030);
  CHECK(makespan(h1, tenths(10, 12, 8)) == 1058);
  CHECK(makespan(h1, tenths(10, 10, 5)) == 905);
  CHECK(peaks(h1) == list(8, 8));

  auto h2 = made({.name = "zb-h2", .ranks = 8, .micro_batches = 32});
  CHECK(longest_span(h2, tenths(1, 1, 1)) == 3 * 32);
  CHECK(peaks(h2) == list{15, 15, 15, 15, 15, 15, 15, 15});

  auto v = made({.name = "zb-v", .ranks = 8, .micro_batches = 32});
  CHECK(longest_span(v, tenths(5, 5, 5)) == 960);
  CHECK(makespan(v, tenths(5, 5, 5)) == 995);
  CHECK(peaks(v) == list(8, 16));
  CHECK(makespan(made({.name = "zb-v", .ranks = 4, .micro_batches = 16}), tenths(5, 6, 4)) == 498);
}

TEST_CASE("DualPipe and Chimera have the spans of their papers", "[core][schedule]") {
  cell_costs dual{.forward = 1, .backward = 2, .input_gradient = 1, .weight_gradient = 1};
  auto eight = made({.name = "dualpipe", .ranks = 8, .micro_batches = 16});
  CHECK(makespan(eight, dual) == 54);
  CHECK(peaks(eight) == list(8, 9));
  CHECK(makespan(made({.name = "dualpipe", .ranks = 4, .micro_batches = 8}), dual) == 26);
  CHECK(makespan(made({.name = "dualpipe-v", .ranks = 4, .micro_batches = 10}), dual) == 66);

  struct row {
    std::uint32_t p, twice, once;
  };
  for (auto [p, twice, once] : {row{4, 16, 10}, row{8, 36, 22}, row{16, 76, 46}}) {
    CHECK(makespan(made({.name = "chimera", .ranks = p, .micro_batches = p})) == twice);
    cell_costs equal{.forward = 1, .backward = 1};
    auto plan = made({.name = "chimera",
                      .ranks = p,
                      .micro_batches = p,
                      .costs = std::vector<cell_costs>(p, equal)});
    CHECK(makespan(plan, equal) == once);
    for (auto peak : peaks(plan)) CHECK((p / 2 + 1 <= peak && peak <= p));
  }
}
