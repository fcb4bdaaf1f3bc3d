// Every generator over a grid of sizes passes the rules, compute-only and lowered; changed
// schedules are refused, with the reason.
#include "core/schedule/validate_plan.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "base/rng.hpp"
#include "core/schedule/lower.hpp"
#include "core/schedule/plan_hash.hpp"
#include "core/schedule/text.hpp"
#include "unit/core/schedule/made.hpp"

using namespace shoal;
using namespace shoal::core;

namespace {

void check_legal(const plan_options& options, const pipeline_plan& plan) {
  CAPTURE(options.name, options.ranks, options.chunks, options.micro_batches, options.batches,
          options.recompute, options.group, options.replicas, options.warm_up);
  auto checked = validate_plan(plan);
  if (!checked) FAIL(checked.error().text);
  for (bool reduce : {true, false}) {
    auto lowered = lower(plan, {.reduce = reduce});
    if (!lowered) FAIL(lowered.error().text);
    for (bool rendezvous : {true, false}) {
      auto whole = validate_plan(*lowered, {.rendezvous = rendezvous});
      if (!whole) FAIL(whole.error().text);
      CHECK((whole->executable && checked->executable == (plan.ranks.size() == 1)));
      for (rank_index r = 0; r < plan.rank_count(); ++r) {
        CHECK(whole->ranks[r].live_peak == checked->ranks[r].live_peak);
        CHECK(whole->ranks[r].versions_peak == checked->ranks[r].versions_peak);
      }
    }
    CHECK(*lowered == lower(plan, {.reduce = reduce}).value());
  }
}

/// Calls `visit` with the options of every generator over a grid; those that are refused must say
/// what would be legal.
template <class Visit>
std::size_t for_each_legal(Visit visit) {
  std::size_t legal = 0;
  auto give = [&](const plan_options& options) {
    auto plan = make_plan(options);
    if (plan) {
      ++legal;
      visit(options, *plan);
    } else {
      CAPTURE(plan.error().text);
      CHECK(plan.error().code == errc::config);
      CHECK(plan.error().text.find("nearest legal number is") != std::string::npos);
    }
  };
  for (auto& name : plan_names())
    for (std::uint32_t p : {1u, 2u, 3u, 4u, 6u, 8u})
      for (std::uint32_t m : {1u, 2u, 3u, 4u, 6u, 7u, 8u, 12u, 16u, 19u, 24u}) {
        give({.name = name, .ranks = p, .micro_batches = m});
        if (!name.starts_with("dualpipe") && !name.starts_with("varuna"))
          give({.name = name, .ranks = p, .micro_batches = m, .recompute = true});
      }
  for (auto name : {"looped-bfs", "interleaved-1f1b"})
    for (std::uint32_t p : {1u, 2u, 4u, 5u})
      for (std::uint32_t v : {2u, 3u, 4u})
        for (std::uint32_t m : {4u, 5u, 8u, 10u, 12u, 13u}) {
          give({.name = name, .ranks = p, .chunks = v, .micro_batches = m});
          if (name != std::string("looped-bfs"))
            for (std::uint32_t g : {4u, 6u, 8u})
              give({.name = name, .ranks = p, .chunks = v, .micro_batches = m, .group = g});
        }
  return legal;
}

}  // namespace

TEST_CASE("every generated schedule passes the rules, compute-only and lowered",
          "[core][schedule]") {
  CHECK(for_each_legal(check_legal) > 1200);
}

TEST_CASE("schedules with vectors of their own pass the rules", "[core][schedule]") {
  for (auto& warm_up : std::vector<std::vector<std::uint32_t>>{
         {3, 2, 1, 0}, {5, 5, 2, 2}, {9, 4, 3, 0}, {0, 0, 0, 0}, {99, 8, 8, 8}})
    for (std::uint32_t m : {1u, 4u, 9u}) {
      plan_options options{.name = "1f1b", .ranks = 4, .micro_batches = m, .warm_up = warm_up};
      check_legal(options, made(options));
    }
  for (auto& replicas : std::vector<std::vector<std::uint32_t>>{
         {3, 1}, {2, 1, 1}, {15, 1}, {2, 1}, {7, 1}, {1, 2}, {2, 3, 1}, {4, 2, 1}, {12, 1, 3, 1}})
    for (std::uint32_t rounds : {1u, 2u, 5u}) {
      plan_options options{.name = "pipedream", .replicas = replicas};
      options.ranks = 0;
      options.micro_batches = 1;
      for (auto r : replicas) {
        options.ranks += r;
        options.micro_batches = std::lcm(options.micro_batches, r);
      }
      options.micro_batches *= rounds;
      check_legal(options, made(options));
    }
  for (std::uint32_t batches : {1u, 2u, 5u})
    for (std::uint32_t m : {4u, 5u, 9u}) {
      plan_options options{
        .name = "pipedream-2bw", .ranks = 4, .micro_batches = m, .batches = batches};
      check_legal(options, made(options));
    }
  for (std::uint32_t f : {1u, 3u, 10u})
    for (std::uint32_t b : {1u, 2u, 7u, 25u})
      for (std::uint32_t slow : {1u, 2u}) {
        cell_costs one{.forward = f, .backward = b, .recompute = f},
          other{.forward = slow * f, .backward = slow * b, .recompute = slow * f};
        for (auto name : {"varuna", "chimera"}) {
          plan_options options{
            .name = name, .ranks = 4, .micro_batches = 10, .costs = {one, other, one, one}};
          check_legal(options, made(options));
        }
      }
}

TEST_CASE("versions are as many as the books say", "[core][schedule]") {
  for (std::uint32_t p : {1u, 2u, 4u, 7u}) {
    auto stash = validate_plan(made({.name = "pipedream", .ranks = p, .micro_batches = 20}));
    auto sync = validate_plan(made({.name = "pipedream-sync", .ranks = p, .micro_batches = 20}));
    auto two = validate_plan(
      made({.name = "pipedream-2bw", .ranks = p, .micro_batches = p + 1, .batches = 4}));
    REQUIRE((stash && sync && two));
    for (rank_index r = 0; r < p; ++r) {
      CHECK(stash->ranks[r].versions_peak == std::max(p - r, 2u));
      CHECK(stash->ranks[r].live_peak == p - r);
      CHECK(sync->ranks[r].versions_peak >= stash->ranks[r].versions_peak);
      CHECK(two->ranks[r].versions_peak == 2);
    }
  }
  auto plan = made({.name = "pipedream", .ranks = 2, .micro_batches = 4});
  CHECK(text_of(plan.ranks[0]) ==
        "0F0@0 0F1@0 0B0@0 0OPT0@1 0F2@1 0B1@0 0DROP@0 0OPT1@2 0F3@2 0B2@1 0DROP@1 0OPT2@3 "
        "0B3@2 0DROP@2 0OPT3@4 0DROP@3");
}

TEST_CASE("changed schedules are refused", "[core][schedule]") {
  struct place {
    rank_index r;
    std::size_t i;
  };
  std::size_t tried = 0;
  auto check_changes = [&](const pipeline_plan& plan, rng& random) {
    auto any = [&]() {
      auto r = static_cast<rank_index>(random.below(plan.ranks.size()));
      return place{r, static_cast<std::size_t>(random.below(plan.ranks[r].size()))};
    };
    auto refused = [&](const char* change, place at, const pipeline_plan& changed) {
      CAPTURE(plan.name, change, at.r, at.i, text_of(plan.ranks[at.r][at.i]));
      CHECK_FALSE(validate_plan(changed));
      ++tried;
    };
    for (int k = 0; k < 12; ++k) {
      auto at = any();
      auto c = plan.ranks[at.r][at.i];
      auto changed = plan;
      auto& order = changed.ranks[at.r];
      auto here = order.begin() + static_cast<std::ptrdiff_t>(at.i);
      if (c.what != operation::recompute && c.what != operation::drop_version) {
        order.erase(here);
        refused("dropped", at, changed);
      }
      changed = plan;
      changed.ranks[at.r].push_back(c);
      changed.ranks[at.r].back().group = none;
      refused("twice", at, changed);

      changed = plan;
      auto other = (at.r + 1) % plan.rank_count();
      changed.ranks[at.r].erase(changed.ranks[at.r].begin() + static_cast<std::ptrdiff_t>(at.i));
      changed.ranks[other].insert(changed.ranks[other].begin(), c);
      if (has_micro_batch(c.what)) refused("on another rank", at, changed);

      for (auto i = at.i + 1; i < plan.ranks[at.r].size(); ++i) {
        auto& later = plan.ranks[at.r][i];
        bool depends = later.stage == c.stage && later.micro_batch == c.micro_batch &&
                       c.what == operation::forward && is_compute(later.what);
        bool same_channel = is_send(c.what) && later.what == c.what && later.stage == c.stage;
        if (!depends && !same_channel) continue;
        changed = plan;
        std::swap(changed.ranks[at.r][at.i], changed.ranks[at.r][i]);
        refused("exchanged", at, changed);
        break;
      }
    }
  };
  for (auto& name : plan_names()) {
    rng random(mix_key(std::vector<std::uint64_t>{7}, name));
    for (std::uint32_t p : {2u, 4u})
      for (std::uint32_t m : {8u, 12u}) {
        plan_options options{.name = name, .ranks = p, .micro_batches = m};
        if (name == "pipedream-2bw") options.batches = 2;
        auto plan = made(options);
        check_changes(plan, random);
        check_changes(lower(plan).value(), random);
      }
  }
  CHECK(tried > 3000);
}

TEST_CASE("a cycle is found exactly where a walk through the lists gets stuck",
          "[core][schedule]") {
  rng random(mix_key(std::vector<std::uint64_t>{3}, "cycles"));
  std::size_t stuck = 0, runs = 0;
  for (auto name : {"gpipe", "1f1b", "1f1b-eager", "varuna", "zb-h1", "interleaved-1f1b"})
    for (int k = 0; k < 120; ++k) {
      auto plan = made({.name = name, .ranks = 3, .micro_batches = 6});
      for (auto change = 1 + random.below(3); change > 0; --change) {
        auto& order = plan.ranks[random.below(3)];
        auto from = static_cast<std::ptrdiff_t>(random.below(order.size()));
        auto to = std::min(from + 1 + static_cast<std::ptrdiff_t>(random.below(6)),
                           static_cast<std::ptrdiff_t>(order.size()) - 1);
        std::rotate(order.begin() + from, order.begin() + from + 1, order.begin() + to + 1);
      }
      auto checked = validate_plan(plan);
      auto walked = unroll(plan, cell_index(plan), {});
      CHECK(checked.has_value() == walked.has_value());
      ++(walked ? runs : stuck);
      if (checked) CHECK(validate_plan(lower(plan).value()));
    }
  CHECK(runs > 50);
  CHECK(stuck > 50);
}
