#include <catch2/catch.hpp>

#include "unit/core/morph/supervisor_lab.hpp"

using namespace shoal;
using namespace shoal::core;
using lab = shoal::core::test::supervisor_lab;

TEST_CASE("the first nodes get names, halts, plans and a commit, in this order", "[core][morph]") {
  lab l;
  l.start();
  CHECK(l.acts<persist>().at(0).what.term == term_id{1});
  l.join(1);
  CHECK(l.sent<welcome>().at(1).you == sender{{1}, {1}});
  CHECK(l.state() == job_state::gathering);
  l.join(2);
  CHECK(l.sent<halt>().size() == 2);
  l.say(1, l.stands(1));
  l.say(2, l.stands(2));
  l.pass(75ms);
  auto plans = l.sent<prepare>();
  REQUIRE(plans.size() == 2);
  CHECK(plans.at(1).step == step_id{0});
  CHECK(plans.at(2).missing.size() == 2);
  CHECK(plans.at(2).missing[0].holders.empty());
  l.is_ready(1);
  CHECK(l.sent<commit>().empty());
  l.is_ready(2);
  CHECK(l.sent<commit>().size() == 2);
  REQUIRE(std::holds_alternative<persist>(l.seen.front()));  // durable before anyone hears of it
  CHECK(std::get<persist>(l.seen.front()).what.running == l.s->status().view);
  CHECK(l.state() == job_state::running);
}

TEST_CASE("with fewer nodes than were started, the job begins after a while", "[core][morph]") {
  lab l;
  l.start();
  l.join(1);
  l.pass(900ms, {1});
  CHECK(l.state() == job_state::gathering);
  l.pass(200ms, {1});
  CHECK(l.state() == job_state::halting);
}

TEST_CASE("another protocol or another job is refused, for good", "[core][morph]") {
  lab l;
  l.start();
  auto old = l.knock(1);
  old.protocol = protocol_version + 1;
  l.say(1, old);
  CHECK(l.sent<refused>().at(1).code == static_cast<std::uint8_t>(errc::protocol));
  CHECK(l.acts<drop_link>().size() == 1);
  auto other = l.knock(2);
  other.job = 10;
  l.say(2, other);
  CHECK(l.sent<refused>().at(2).code == static_cast<std::uint8_t>(errc::foreign));
  auto unknown = l.knock(3);
  unknown.job = 0;
  l.say(3, unknown);
  CHECK(l.sent<welcome>().size() == 1);
}

TEST_CASE("a hello that comes twice is answered alike", "[core][morph]") {
  lab l;
  l.start();
  l.join(1);
  auto first = l.sent<welcome>().at(1);
  l.join(1);
  CHECK(l.sent<welcome>().at(1) == first);
  CHECK(l.s->status().nodes.size() == 1);
}

TEST_CASE("a lost node: the survivor halts, takes over, and goes on from the newest step",
          "[core][morph]") {
  lab l;
  l.run_two();
  l.say(1, l.word(1, 1));
  CHECK(l.acts<step_done>().size() == 1);
  l.step(link_lost{{2}, "reset"});
  CHECK(l.state() == job_state::halting);
  CHECK(l.sent<halt>().size() == 1);
  l.say(1, l.stands(1, 1, {0}));
  CHECK(l.sent<prepare>().empty());  // others may be dying in this moment
  l.pass(100ms, {1});
  auto plan = l.sent<prepare>().at(1);
  CHECK(plan.step == step_id{0});  // nobody has blocks 1 and 2 at step 1
  CHECK(plan.missing.size() == 3);
  l.is_ready(1);
  CHECK(l.state() == job_state::running);
  l.say(1, l.word(1, 1));
  CHECK(l.acts<step_done>().at(0).again);
  l.say(1, l.word(1, 2));
  auto reports = l.acts<report>();
  auto morph = std::ranges::find(reports, report_kind::morph, &report::kind);
  REQUIRE(morph != reports.end());
  CHECK(morph->timing->lost == 1);
}

TEST_CASE("a survivor tells a round in the lead's place, but not before the lead's own words",
          "[core][morph]") {
  lab l;
  l.run_two();
  l.say(1, l.word(1, 1));
  auto stood = l.stands(2, 3, {1, 2});
  stood.last_verdict = l.word(1, 3).what;
  SECTION("the lead lives: its words are on their way") {
    l.say(2, stood);
    CHECK(l.acts<step_done>().empty());
    for (std::uint64_t step : {2, 3}) {
      l.say(1, l.word(1, step));
      REQUIRE(l.acts<step_done>().size() == 1);
      CHECK(l.acts<step_done>()[0].what.what.step.value == step);
      CHECK_FALSE(l.acts<step_done>()[0].again);
    }
  }
  SECTION("the lead is dead") {
    l.step(link_lost{{1}, "reset"});
    l.say(2, stood);
    REQUIRE(l.acts<step_done>().size() == 1);
    CHECK(l.acts<step_done>()[0].what.what.step.value == 3);
  }
  SECTION("the lead's death is seen after the survivor has spoken") {
    l.say(2, stood);
    CHECK(l.acts<step_done>().empty());
    l.step(link_lost{{1}, "reset"});
    REQUIRE(l.acts<step_done>().size() == 1);
    CHECK(l.acts<step_done>()[0].what.what.step.value == 3);
  }
}

TEST_CASE("silence is a loss too, and the silent one's link is dropped", "[core][morph]") {
  lab l;
  l.run_two();
  l.pass(1500ms, {1});
  CHECK(l.acts<drop_link>().size() == 1);
  CHECK(l.state() == job_state::halting);
}

TEST_CASE("several losses within the gathering time are one morph", "[core][morph]") {
  lab l;
  l.job.nodes.local = 3;
  l.start();
  for (auto n : {1, 2, 3}) l.join(static_cast<std::uint64_t>(n));
  for (auto n : {1, 2, 3})
    l.say(static_cast<std::uint64_t>(n), l.stands(static_cast<std::uint64_t>(n)));
  l.pass(75ms, {1, 2, 3});
  for (auto n : {1, 2, 3}) l.is_ready(static_cast<std::uint64_t>(n));
  auto before = l.s->status().view;
  l.step(link_lost{{2}, "reset"});
  l.now += 20ms;
  l.step(link_lost{{3}, "reset"});
  CHECK(l.acts<send>().empty());
  l.say(1, l.stands(1, 0, {0}));
  l.pass(100ms, {1});
  CHECK(l.sent<prepare>().size() == 1);
  CHECK(l.s->status().view == before.next());
}

TEST_CASE("who does not answer a halt is dropped", "[core][morph]") {
  lab l;
  l.run_two();
  trouble t{{{1}, {1}}, l.s->status().view, {2}, "no gradient came"};
  l.say(1, t);
  CHECK(l.sent<halt>().size() == 2);
  l.say(1, l.stands(1, 0, {0}));
  l.pass(2200ms, {1, 2});
  CHECK(l.acts<drop_link>().at(0).link == link_id{2});
  CHECK(l.sent<prepare>().size() == 1);
}

TEST_CASE("roll-forward: the verdict of one survivor is given to the other", "[core][morph]") {
  lab l;
  l.run_two();
  l.say(1, trouble{{{1}, {1}}, l.s->status().view, {}, "x"});
  auto ahead = l.stands(1, 1, {0});
  ahead.last_verdict = l.word(1, 1).what;
  auto behind = l.stands(2, 0, {1, 2});
  behind.has_sums = true;
  l.say(1, ahead);
  l.say(2, behind);
  l.pass(100ms, {1, 2});
  auto plans = l.sent<prepare>();
  CHECK(plans.at(2).step == step_id{1});
  CHECK(plans.at(2).roll_forward);
  CHECK_FALSE(plans.at(1).roll_forward);
}

TEST_CASE("an arrival drains the view; the new one starts with everyone", "[core][morph]") {
  lab l;
  l.run_two();
  l.say(1, l.word(1, 1));
  l.join(3);
  CHECK(l.state() == job_state::running);
  l.pass(100ms, {1, 2, 3});
  CHECK(l.state() == job_state::draining);
  CHECK(l.sent<drain>().size() == 1);
  CHECK(l.sent<drain>().contains(1));  // the lead
  l.say(1, l.word(1, 2, decision::apply, true));
  CHECK(l.sent<halt>().size() == 3);
  l.say(1, l.stands(1, 2, {0}));
  l.say(2, l.stands(2, 2, {1, 2}));
  l.say(3, l.stands(3));
  CHECK(l.sent<prepare>().size() == 3);  // planned: no gathering
  CHECK(l.sent<prepare>().at(3).missing.at(0).holders == std::vector<node_id>{{2}});
}

TEST_CASE("the job does not pause for a newcomer that is still starting", "[core][morph]") {
  lab l;
  l.run_two();
  l.say(1, l.word(1, 1));
  l.say(3, l.knock(3));
  heartbeat b;
  b.from = {{3}, {1}};
  b.doing = activity::starting;
  l.say(3, b);
  l.pass(500ms, {1, 2});
  CHECK(l.state() == job_state::running);
  b.doing = activity::idle;
  l.say(3, b);
  l.pass(100ms, {1, 2, 3});
  CHECK(l.state() == job_state::draining);
}

TEST_CASE("an arrival is not looked at before the view has decided a step", "[core][morph]") {
  lab l;
  l.run_two();
  l.join(3);
  l.pass(500ms, {1, 2, 3});
  CHECK(l.state() == job_state::running);
  l.say(1, l.word(1, 1));
  l.pass(100ms, {1, 2, 3});
  CHECK(l.state() == job_state::draining);
}

TEST_CASE("a planned leave: blocks are handed over, then the node is let go", "[core][morph]") {
  lab l;
  l.run_two();
  l.say(1, l.word(1, 1));
  l.say(2, leaving{{{2}, {1}}, "SIGTERM"});
  l.pass(100ms, {1, 2});
  CHECK(l.state() == job_state::draining);
  l.say(1, l.word(1, 2, decision::apply, true));
  l.say(1, l.stands(1, 2, {0}));
  l.say(2, l.stands(2, 2, {1, 2}));
  auto plans = l.sent<prepare>();
  REQUIRE(plans.size() == 2);  // the leaving one serves
  CHECK(plans.at(1).missing.size() == 2);
  CHECK(plans.at(2).missing.empty());
  l.is_ready(1);
  CHECK(l.sent<commit>().size() == 1);
  CHECK(l.sent<stop>().at(2).code == 0);
}

TEST_CASE("a node that the job cannot do without stays until another comes", "[core][morph]") {
  lab l;
  l.job.parallelism.nodes_min = 2;
  l.run_two();
  l.say(1, l.word(1, 1));
  l.step(leave_asked{{2}});
  l.pass(300ms, {1, 2});
  CHECK(l.state() == job_state::running);
  l.join(3);
  l.pass(100ms, {1, 2, 3});
  CHECK(l.state() == job_state::draining);
}

TEST_CASE("a spare that wants to leave is let go at once", "[core][morph]") {
  lab l;
  l.run_two();
  l.join(3);
  l.say(3, leaving{{{3}, {1}}, "SIGTERM"});
  CHECK(l.sent<stop>().contains(3));
}

TEST_CASE("too few nodes: the job holds, and goes on when one comes", "[core][morph]") {
  lab l;
  l.job.parallelism.nodes_min = 2;
  l.run_two();
  l.step(link_lost{{2}, "reset"});
  l.say(1, l.stands(1, 0, {0}));
  l.pass(100ms, {1});
  CHECK(l.state() == job_state::holding);
  CHECK(l.s->status().reason == "too few");
  l.join(3);
  CHECK(l.state() == job_state::halting);
}

TEST_CASE("a loss while a view gets ready starts a higher one", "[core][morph]") {
  lab l;
  l.start();
  l.join(1);
  l.join(2);
  l.say(1, l.stands(1));
  l.say(2, l.stands(2));
  l.pass(75ms);
  l.is_ready(1);
  auto before = l.s->status().view;
  l.step(link_lost{{2}, "reset"});
  CHECK(l.s->status().view == before.next());
  ready late;
  late.from = {{1}, {1}};
  late.view = before;
  l.say(1, late);
  CHECK(l.sent<commit>().empty());
}

TEST_CASE("a damaged checkpoint is not used again", "[core][morph]") {
  lab l;
  l.found = {{2}, {4}};
  l.start();
  l.join(1);
  l.join(2);
  l.say(1, l.stands(1));
  l.say(2, l.stands(2));
  l.pass(75ms);
  CHECK(l.sent<prepare>().at(1).checkpoint == step_id{4});
  failed f{{{1}, {1}}, l.s->status().view, static_cast<std::uint8_t>(errc::damaged), "bad hash", {},
           {4}};
  l.say(1, f);
  l.say(1, l.stands(1));
  l.say(2, l.stands(2));
  l.pass(300ms, {1, 2});
  CHECK(l.sent<prepare>().at(1).checkpoint == step_id{2});
}

TEST_CASE("a pair that fails again and again loses the suspect", "[core][morph]") {
  lab l;
  l.start();
  l.join(1);
  l.join(2);
  for (int i = 0; i < 3; ++i) {
    l.say(1, l.stands(1));
    l.say(2, l.stands(2));
    l.pass(1s, {1, 2});
    REQUIRE(l.state() == job_state::preparing);
    l.say(1, failed{{{1}, {1}}, l.s->status().view, 0, "no answer", {2}, {}});
  }
  CHECK(l.sent<stop>().contains(2));
  CHECK(l.sent<halt>().size() == 1);
}

TEST_CASE("attempts without progress come to an end", "[core][morph]") {
  lab l;
  l.start();
  l.join(1);
  l.join(2);
  for (int i = 0; i < 10; ++i) {
    l.say(1, l.stands(1));
    l.say(2, l.stands(2));
    l.pass(4s, {1, 2});
    REQUIRE(l.state() == job_state::preparing);
    l.say(1, failed{{{1}, {1}}, l.s->status().view, 0, "out of luck", {}, {}});
  }
  l.say(1, l.stands(1));
  l.say(2, l.stands(2));
  l.pass(4s, {1, 2});
  REQUIRE(l.acts<finished>().size() == 1);
  CHECK(l.acts<finished>()[0].failure == errc::no_progress);
}

TEST_CASE("replicas that get ready with other bits are found before they train", "[core][morph]") {
  lab l;
  l.start();
  l.join(1);
  l.join(2);
  l.say(1, l.stands(1));
  l.say(2, l.stands(2));
  l.pass(75ms);
  for (std::uint64_t n : {1, 2}) {
    ready r;
    r.from = {{n}, {1}};
    r.view = l.s->status().view;
    r.blocks = {{0, n}};
    l.say(n, r);
  }
  CHECK(l.state() == job_state::halting);
  CHECK(l.sent<commit>().empty());
}
