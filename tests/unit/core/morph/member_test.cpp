#include <catch2/catch.hpp>

#include "unit/core/morph/member_lab.hpp"

using namespace shoal;
using namespace shoal::core;
using namespace shoal::core::test;
using lab = member_lab;

TEST_CASE("a newcomer says hello without a name, and takes the one that it is given",
          "[core][morph]") {
  lab l;
  auto hellos = told<hello>(l.step(supervisor_found{}));
  REQUIRE(hellos.size() == 1);
  CHECK_FALSE(hellos[0].now.from.node);
  CHECK(hellos[0].process == 77);
  auto actions = l.order(welcome{{1}, {{1}, {1}}, 9, "text"});
  CHECK(all<joined>(actions).at(0).what.job_text == "text");
  CHECK(l.node.self() == sender{{1}, {1}});
}

TEST_CASE("nothing but hello is told before welcome", "[core][morph]") {
  lab l;
  l.step(supervisor_found{});
  CHECK(l.tick().empty());
  l.order(welcome{{1}, {{1}, {1}}, 9, "text"});
  CHECK(told<heartbeat>(l.tick()).at(0).doing ==
        activity::starting);  // its engine is not there yet
}

TEST_CASE("prepare, ready, commit: a node trains", "[core][morph]") {
  lab l;
  l.join();
  auto actions = l.order(l.plan());
  CHECK(all<runner_get_ready>(actions).size() == 1);
  auto coordinators = all<start_coordinator>(actions);  // node 1 is stage 0 of replica 0
  REQUIRE(coordinators.size() == 1);
  CHECK(coordinators[0].replica == 0);
  CHECK(coordinators[0].step == step_id{7});
  CHECK(told<ready>(l.prepared()).at(0).blocks.size() == 1);
  CHECK(all<runner_begin>(l.order(commit{{1}, {4}})).size() == 1);
  CHECK(l.node.doing() == activity::training);
}

TEST_CASE("a commit that overtakes our own readiness waits for it", "[core][morph]") {
  lab l;
  l.join();
  l.order(l.plan());
  CHECK(l.order(commit{{1}, {4}}).empty());
  CHECK(all<runner_begin>(l.prepared()).size() == 1);
}

TEST_CASE("a halt ends the view and is answered with a standing", "[core][morph]") {
  lab l;
  l.train();
  auto actions = l.order(halt{{1}, {5}});
  CHECK(all<runner_halt>(actions).size() == 1);
  CHECK(all<stop_coordinator>(actions).size() == 1);
  CHECK(l.order(halt{{1}, {6}}).empty());  // one answer is enough
  auto standings = told<standing>(l.halted({8}));
  REQUIRE(standings.size() == 1);
  CHECK(standings[0].view == view_id{6});
  CHECK(standings[0].applied == step_id{8});
  CHECK(standings[0].doing == activity::holding);
  CHECK(told<standing>(l.order(halt{{1}, {7}})).size() == 1);  // at once now
}

TEST_CASE("a halt of the view that we train is answered, and training goes on", "[core][morph]") {
  lab l;
  l.train();
  auto actions = l.order(halt{{1}, {4}});
  CHECK(all<runner_halt>(actions).empty());
  CHECK(told<standing>(actions).at(0).doing == activity::training);
}

TEST_CASE("commands of an older term or view are dropped", "[core][morph]") {
  lab l;
  l.train();
  l.order(halt{{2}, {6}});
  l.halted();
  CHECK(l.order(l.plan()).empty());  // term 1, view 4
  auto plan = l.plan(5);
  plan.term = {2};
  CHECK(l.order(plan).empty());
  CHECK(l.order(stop{{1}, 0, "old"}).empty());
  plan.view = {6};
  CHECK_FALSE(l.order(plan).empty());
  CHECK(l.order(commit{{1}, {6}}).empty());
}

TEST_CASE("a higher view in any message halts the old one", "[core][morph]") {
  SECTION("from a peer") {
    lab l;
    l.train();
    CHECK(all<runner_halt>(l.step(from_peer{{2}, word_on(5, 8)})).size() == 1);
  }
  SECTION("from the supervisor's lease") {
    lab l;
    l.train();
    CHECK(all<runner_halt>(l.order(lease{{1}, {5}, 0})).size() == 1);
  }
}

TEST_CASE("reports and verdicts go to whom they are for", "[core][morph]") {
  lab l;
  l.train();
  stage_report mine;
  mine.view = {4};
  mine.step = {8};
  auto own = all<to_coordinator>(l.step(from_runner{runner_reported{mine}}));
  REQUIRE(own.size() == 1);
  CHECK(std::get<stage_report>(own[0].what).from == l.node.self());

  auto other = mine;
  other.from = {{2}, {1}};
  CHECK(all<to_coordinator>(l.step(from_peer{{2}, other})).size() == 1);
  other.from = {{2}, {9}};  // another life of the node
  CHECK(l.step(from_peer{{2}, other}).empty());
  CHECK(l.step(from_peer{{8}, mine}).empty());  // nobody of this view

  CHECK(all<runner_decide>(l.step(from_peer{{1}, word_on(4, 8)})).size() == 1);
  CHECK(l.step(from_peer{{2}, word_on(4, 9)}).empty());  // not a coordinator
  CHECK(l.step(from_peer{{1}, word_on(3, 9)}).empty());
}

TEST_CASE("a stage that is not the first reports to its coordinator's node", "[core][morph]") {
  lab l;
  l.id = 2;
  l.train();
  stage_report mine;
  mine.view = {4};
  auto sent = all<to_peer>(l.step(from_runner{runner_reported{mine}}));
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].to.who.node == node_id{1});
  CHECK(all<runner_decide>(l.step(from_peer{{1}, word_on(4, 8)})).size() == 1);
  CHECK(l.step(from_peer{{3}, word_on(4, 9)}).empty());
}

TEST_CASE("another replica's coordinator hears the lead, and its own stage hears it",
          "[core][morph]") {
  lab l;
  l.id = 3;
  l.train();
  auto from_lead = l.step(from_peer{{1}, word_on(4, 8)});
  CHECK(all<to_coordinator>(from_lead).size() == 1);
  CHECK(all<runner_decide>(from_lead).empty());
  CHECK(all<runner_decide>(l.step(from_peer{{3}, word_on(4, 8)})).size() == 1);
}

TEST_CASE("the last verdict of a view ends in a standing, unasked", "[core][morph]") {
  lab l;
  l.train();
  auto last = word_on(4, 8);
  last.last_of_view = true;
  l.step(from_peer{{1}, last});
  auto actions = l.halted({8});
  CHECK(told<standing>(actions).size() == 1);
  CHECK(all<stop_coordinator>(actions).size() == 1);
  CHECK(l.halted({8}).empty());  // a second answer means nothing
}

TEST_CASE("a broken promise of a peer is trouble while training, a failure before",
          "[core][morph]") {
  lab l;
  l.join();
  l.order(l.plan());
  runner_failed broken{{4}, {errc::unreachable, "gone"}, {2}, {}};
  CHECK(told<failed>(l.step(from_runner{broken})).at(0).suspect == node_id{2});
  l.order(halt{{1}, {5}});
  l.halted();

  lab t;
  t.train();
  auto actions = t.step(from_runner{broken});
  CHECK(told<trouble>(actions).at(0).peer == node_id{2});
  CHECK(all<runner_halt>(actions).size() == 1);
  CHECK(told<standing>(t.halted()).size() == 1);
  broken.view = {3};
  CHECK(t.step(from_runner{broken}).empty());
}

TEST_CASE("a lost peer matters, unless it only served blocks that are here", "[core][morph]") {
  lab l;
  l.train();
  CHECK(l.step(peer_lost{{4}, "left"}).empty());  // a member without a place
  CHECK(l.step(peer_lost{{9}, "who?"}).empty());
  CHECK(told<trouble>(l.step(peer_lost{{3}, "reset"})).size() == 1);
}

TEST_CASE("a node without a place becomes a spare at commit", "[core][morph]") {
  lab l;
  l.id = 4;
  l.join();
  l.order(l.plan());
  l.step(from_runner{runner_prepared{{4}, {}}});
  CHECK(all<runner_begin>(l.order(commit{{1}, {4}})).size() == 1);
  CHECK(l.node.doing() == activity::idle);
  CHECK(told<heartbeat>(l.tick()).at(0).doing == activity::idle);
}
