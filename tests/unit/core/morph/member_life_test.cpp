#include <catch2/catch.hpp>

#include "unit/core/morph/member_lab.hpp"

using namespace shoal;
using namespace shoal::core;
using namespace shoal::core::test;
using lab = member_lab;

TEST_CASE("training goes on without a supervisor, for as long as the lease lasts",
          "[core][morph]") {
  lab l;
  l.train();
  CHECK(all<runner_halt>(l.pass(60s, true)).empty());
  l.step(supervisor_lost{"gone"});
  CHECK(all<runner_halt>(l.pass(9s, false)).empty());
  CHECK(all<runner_halt>(l.pass(2s, false)).size() == 1);
  l.halted();
  auto end = all<exit_node>(l.pass(10s, false));
  REQUIRE(end.size() == 1);
  CHECK(end[0].failure == errc::unreachable);
  CHECK(l.step(supervisor_found{}).empty());  // it is over
}

TEST_CASE("a supervisor that does not answer heartbeats is no supervisor", "[core][morph]") {
  lab l;
  l.train();  // the connection stands, but nothing comes back
  CHECK(all<runner_halt>(l.pass(11s, false)).size() == 1);
}

TEST_CASE("a node that was frozen for long stops before it does anything else", "[core][morph]") {
  lab l;
  l.train();
  l.pass(1s, true);
  l.now += 1500ms;
  auto actions = l.step(from_peer{{1}, word_on(4, 8)});
  CHECK(all<runner_halt>(actions).size() == 1);
  CHECK(told<trouble>(actions).size() == 1);
  CHECK(all<runner_decide>(actions).empty());
}

TEST_CASE("after a reconnect the hello tells where we stand", "[core][morph]") {
  lab l;
  l.train();
  l.step(supervisor_lost{"crash"});
  auto again = told<hello>(l.step(supervisor_found{}));
  REQUIRE(again.size() == 1);
  CHECK(again[0].now.from == l.node.self());
  CHECK(again[0].now.doing == activity::training);
  CHECK(again[0].now.view == view_id{4});
  CHECK(again[0].job == 9);
}

TEST_CASE("a supervisor of another job is left", "[core][morph]") {
  lab l;
  l.join();
  l.step(supervisor_lost{""});
  l.step(supervisor_found{});
  CHECK(all<exit_node>(l.order(welcome{{2}, {{1}, {1}}, 10, "other"})).at(0).failure ==
        errc::refused);
}

TEST_CASE("a wish to leave is told, also to the next supervisor; a nobody just goes",
          "[core][morph]") {
  lab nobody;
  CHECK(all<exit_node>(nobody.step(leave_signal{"SIGTERM"})).size() == 1);
  lab l;
  l.join();
  CHECK(told<leaving>(l.step(leave_signal{"SIGTERM"})).size() == 1);
  l.step(supervisor_lost{""});
  l.step(supervisor_found{});
  CHECK(told<leaving>(l.order(welcome{{2}, {{1}, {1}}, 9, "text"})).size() == 1);
  auto end = all<exit_node>(l.order(stop{{2}, 0, "thank you"}));
  REQUIRE(end.size() == 1);
  CHECK_FALSE(end[0].failure);
}

TEST_CASE("stop and refused end the process with their code", "[core][morph]") {
  lab l;
  l.join();
  auto code = static_cast<std::uint8_t>(static_cast<int>(errc::not_finite) + 1);
  CHECK(all<exit_node>(l.order(stop{{1}, code, "NaN"})).at(0).failure == errc::not_finite);
  lab r;
  r.step(supervisor_found{});
  CHECK(all<exit_node>(r.order(refused{13, "?"})).at(0).failure == static_cast<errc>(13));
}

TEST_CASE("parts of a checkpoint go to the lead of their view, also after it", "[core][morph]") {
  lab l;
  l.id = 2;
  l.train();
  l.order(halt{{1}, {5}});
  l.halted();
  parts_written made;
  made.view = {4};
  made.step = {8};
  auto sent = all<to_peer>(l.step(from_writer{made}));
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].to.who.node == node_id{1});
  made.view = {2};
  CHECK(l.step(from_writer{made}).empty());

  lab lead;
  lead.train();
  made.view = {4};
  CHECK(all<collect_parts>(lead.step(from_writer{made})).size() == 1);
  CHECK(all<collect_parts>(lead.step(from_peer{{2}, made})).size() == 1);
}

TEST_CASE("the newest finished checkpoint is told to each supervisor again", "[core][morph]") {
  lab l;
  l.train();
  CHECK(told<checkpoint_done>(l.step(from_writer{checkpoint_done{{}, {8}, ""}})).size() == 1);
  l.step(supervisor_lost{""});
  CHECK(told<checkpoint_done>(l.step(from_writer{checkpoint_done{{}, {10}, ""}})).empty());
  l.step(supervisor_found{});
  auto again = told<checkpoint_done>(l.order(welcome{{2}, {{1}, {1}}, 9, "text"}));
  REQUIRE(again.size() == 1);
  CHECK(again[0].step == step_id{10});
  CHECK(again[0].from == l.node.self());
}

TEST_CASE("a prepare while still at work is refused, and the work stops", "[core][morph]") {
  lab l;
  l.train();
  auto plan = l.plan(5);
  auto actions = l.order(plan);
  CHECK(all<runner_halt>(actions).size() == 1);
  CHECK(all<runner_get_ready>(actions).empty());
  CHECK(told<failed>(actions).size() == 1);
}
