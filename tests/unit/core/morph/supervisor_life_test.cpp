#include <catch2/catch.hpp>

#include "core/plan/link_figures.hpp"
#include "unit/core/morph/supervisor_lab.hpp"

using namespace shoal;
using namespace shoal::core;
using lab = shoal::core::test::supervisor_lab;

TEST_CASE("the last step, its checkpoint, and everyone goes home", "[core][morph]") {
  lab l;
  l.run_two();
  for (std::uint64_t step = 1; step <= 5; ++step) l.say(1, l.word(1, step));
  l.say(1, l.word(1, 6, decision::finish, true));
  CHECK(l.state() == job_state::finishing);
  CHECK(l.acts<step_done>().size() == 1);
  l.say(1, checkpoint_done{{{1}, {1}}, {5}, ""});
  CHECK(l.state() == job_state::done);
  CHECK(l.sent<stop>().size() == 2);
  CHECK_FALSE(l.acts<finished>().at(0).failure);
  l.join(7);
  CHECK(l.sent<stop>().contains(7));
}

TEST_CASE("a last checkpoint that fails is tried again, and then it is an error", "[core][morph]") {
  lab l;
  l.run_two();
  for (int i = 0; i < 3; ++i) {
    l.say(1, l.word(1, 6, decision::finish, true));
    REQUIRE(l.state() == job_state::finishing);
    l.say(1, checkpoint_done{{{1}, {1}}, {5}, "the disk is full"});
    if (i == 2) break;
    REQUIRE(l.state() == job_state::halting);
    l.say(1, l.stands(1, 5, {0}));
    l.say(2, l.stands(2, 5, {1, 2}));
    l.pass(300ms, {1, 2});
    l.is_ready(1);
    l.is_ready(2);
  }
  CHECK(l.acts<finished>().at(0).failure == errc::io);
}

TEST_CASE("a value that is not finite ends the job with its own code", "[core][morph]") {
  lab l;
  l.run_two();
  auto d = l.word(1, 3, decision::abort, true);
  d.offence = not_finite{2, 1};
  l.say(1, d);
  auto end = l.acts<finished>().at(0);
  CHECK(end.failure == errc::not_finite);
  CHECK(end.reason.find("micro-batch 2") != std::string::npos);
  CHECK(l.sent<stop>().at(1).code == static_cast<std::uint8_t>(errc::not_finite) + 1);
}

TEST_CASE("a new supervisor adopts a view that trains, without a word to anyone", "[core][morph]") {
  lab old;
  old.run_two();
  lab l;
  l.ledger = old.ledger;
  l.start();
  CHECK(l.ledger.term == term_id{2});
  CHECK(l.state() == job_state::adopting);
  for (std::uint64_t n : {1, 2}) {
    standing at;
    at.from = {{n}, {1}};
    at.view = l.ledger.running;
    at.doing = activity::training;
    at.applied = {3};
    l.say(n, l.knock(n, at));
    CHECK(l.sent<halt>().empty());
    CHECK(l.sent<welcome>().at(n).you == at.from);
  }
  CHECK(l.state() == job_state::running);
  CHECK(l.s->status().step == step_id{3});
}

TEST_CASE("a new supervisor waits for the members that are under way before it halts",
          "[core][morph]") {
  lab old;
  old.run_two();
  lab l;
  l.ledger = old.ledger;
  l.start();
  standing at;
  at.from = {{1}, {1}};
  at.view = l.ledger.running;
  at.doing = activity::holding;
  at.blocks = {{0, 1}};
  l.say(1, l.knock(1, at));
  CHECK(l.state() == job_state::adopting);
  l.pass(900ms, {1});
  CHECK(l.state() == job_state::adopting);
  l.pass(300ms, {1});
  CHECK(l.state() == job_state::halting);
}

TEST_CASE("a view with none of the old members waits until those are known to be dead",
          "[core][morph]") {
  lab l;
  l.run_two();
  l.pass(1200ms);  // both fall silent; they may be alive behind a cut cable
  CHECK(l.state() == job_state::holding);
  l.join(3);
  l.say(3, l.stands(3));
  l.pass(200ms, {3});
  CHECK(l.state() == job_state::holding);
  SECTION("the processes have ended") {
    l.step(node_exited{101, {}});
    l.step(node_exited{0, {2}});
  }
  SECTION("or nobody has heard of them for so long that they have stopped by themselves") {
    l.pass(25s, {3});
    CHECK(l.state() == job_state::holding);
    for (int i = 0; i < 100 && l.state() == job_state::holding; ++i) l.pass(100ms, {3});
  }
  l.pass(25ms, {3});
  CHECK(l.state() == job_state::halting);
  l.say(3, l.stands(3));
  auto at_once = l.sent<prepare>().size();
  l.pass(200ms, {3});
  CHECK(at_once + l.sent<prepare>().size() == 1);
}

TEST_CASE("a member that does not train what it was told to is asked where it stands",
          "[core][morph]") {
  lab l;
  l.run_two();
  l.seen.clear();
  for (int i = 0; i < 50; ++i) {
    l.now += 100ms;
    for (std::uint64_t n : {1, 2}) {
      heartbeat b;
      b.from = {{n}, {1}};
      b.view = l.s->status().view;
      b.doing = n == 1 ? activity::training : activity::prepared;
      l.take(l.s->step(l.now, heard{{n}, b}));
    }
    l.take(l.s->tick(l.now));
  }
  CHECK_FALSE(l.sent<halt>().empty());
}

TEST_CASE("each heartbeat renews the lease", "[core][morph]") {
  lab l;
  l.run_two();
  heartbeat b;
  b.from = {{1}, {1}};
  b.at_ns = 4711;
  l.say(1, b);
  CHECK(l.sent<lease>().at(1).at_ns == 4711);
  CHECK(l.sent<lease>().at(1).view == l.s->status().view);
}

TEST_CASE("a returning node keeps its name; another process under that name gets a new life",
          "[core][morph]") {
  lab l;
  l.start();
  l.join(1);
  l.step(link_lost{{1}, "reset"});
  standing at;
  at.from = {{1}, {1}};
  l.say(5, l.knock(1, at));
  CHECK(l.sent<welcome>().at(5).you == sender{{1}, {1}});
  auto other = l.knock(1, at);
  other.process = 4;
  l.say(6, other);
  CHECK(l.sent<welcome>().at(6).you == sender{{1}, {2}});
  CHECK(l.acts<drop_link>().at(0).link == link_id{5});
}

TEST_CASE("what links were measured with reaches the next plan, smoothed; what is absurd does not",
          "[core][morph]") {
  lab l;
  std::vector<std::pair<double, nanoseconds>> planned_with;
  l.plan = [&](const plan_profile& profile, auto& nodes, auto& present, auto& options) {
    planned_with.emplace_back(profile.link_bytes_per_s, profile.link_latency);
    return shoal::core::test::deep(profile, nodes, present, options);
  };
  l.run_two();
  auto known = l.s->status();
  CHECK(known.link_bytes_per_s == plan_profile{}.link_bytes_per_s);
  CHECK(known.link_latency == plan_profile{}.link_latency);
  for (std::uint64_t step = 1; step <= 3; ++step) {
    auto word = l.word(1, step);
    word.links = {12'500'000, 2'000'000};
    if (step == 2) word.links = {UINT64_MAX, UINT64_MAX};
    l.say(1, word);
  }
  auto rate = refined_rate(refined_rate(known.link_bytes_per_s, 12'500'000), 12'500'000);
  auto latency = refined_latency(refined_latency(known.link_latency, 2'000'000), 2'000'000);
  CHECK(l.s->status().link_bytes_per_s == rate);
  CHECK(l.s->status().link_latency == latency);
  planned_with.clear();
  l.join(3);
  l.pass(300ms, {1, 2, 3});
  REQUIRE_FALSE(planned_with.empty());
  CHECK(planned_with.back() == std::pair(rate, latency));
}

TEST_CASE("words of a former life are not heard", "[core][morph]") {
  lab l;
  l.run_two();
  auto t = trouble{{{1}, {2}}, l.s->status().view, {}, "x"};
  l.say(1, t);
  CHECK(l.state() == job_state::running);
  t.from = {{1}, {1}};
  t.view = t.view.before();
  l.say(1, t);
  CHECK(l.state() == job_state::running);
}

TEST_CASE("replicas that diverge: the odd one is distrusted, all halt", "[core][morph]") {
  lab l;
  l.run_two();
  l.say(1, diverged{{{1}, {1}}, l.s->status().view, {1}, 2, {{2}}});
  CHECK(l.state() == job_state::halting);
  CHECK(l.ledger.distrusted == std::vector<distrust>{{{2}, 2, {1}}});
  l.say(1, l.stands(1, 1, {0, 1, 2}));
  l.say(2, l.stands(2, 1, {1, 2}));
  l.pass(100ms, {1, 2});
  auto missing = l.sent<prepare>().at(2).missing;
  CHECK(std::ranges::count(missing, 2u, &block_source::block) == 1);
}

TEST_CASE("the user's stop ends everything at once", "[core][morph]") {
  lab l;
  l.run_two();
  l.step(stop_asked{errc::interrupted, "Ctrl-C"});
  CHECK(l.sent<stop>().size() == 2);
  CHECK(l.acts<finished>().at(0).failure == errc::interrupted);
}
