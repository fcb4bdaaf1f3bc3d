#include "core/morph/member_machine.hpp"

#include <catch2/catch.hpp>

using namespace shoal;
using namespace shoal::core;

namespace {

template <class T>
std::vector<T> all(const std::vector<member_action>& actions) {
  std::vector<T> found;
  for (auto& a : actions)
    if (auto t = std::get_if<T>(&a)) found.push_back(*t);
  return found;
}

/// What was told to the supervisor, of one kind.
template <class T>
std::vector<T> told(const std::vector<member_action>& actions) {
  std::vector<T> found;
  for (auto& a : all<to_supervisor>(actions))
    if (auto t = std::get_if<T>(&a.what)) found.push_back(*t);
  return found;
}

/// Node 1 of a job whose view 4 is 1:[0-0] -> 2:[1-1] and 3:[0-1]; with time moved by hand.
struct lab {
  member_machine node{[] {
    member_options o;
    o.build = "test";
    o.at = {"h", 1, 2};
    o.process = 77;
    o.timeouts.failure = 1s;
    o.timeouts.orphan = 10s;
    return o;
  }()};
  time_point now{100s};
  std::uint64_t id = 1;

  std::vector<member_action> step(const member_event& e) { return node.step(now, e); }
  std::vector<member_action> order(supervisor_message m) { return step(from_supervisor{std::move(m)}); }
  std::vector<member_action> tick() { return node.tick(now, {}, 0); }
  /// Ticks through `time`; the supervisor answers heartbeats when it is `there`.
  std::vector<member_action> pass(nanoseconds time, bool there) {
    std::vector<member_action> seen;
    for (auto end = now + time; now < end;) {
      now += 100ms;
      auto actions = tick();
      for (auto& beat : told<heartbeat>(actions))
        if (there) order(lease{{1}, {4}, beat.at_ns});
      seen.insert(seen.end(), actions.begin(), actions.end());
    }
    return seen;
  }

  void join() {
    step(supervisor_found{});
    order(welcome{{1}, {{id}, {1}}, 9, "text"});
    node.use([] { timeout_options t; t.failure = 1s; t.orphan = 10s; return t; }());
  }
  prepare plan(std::uint64_t view = 4) {
    prepare p;
    p.term = {1};
    p.view = {view};
    p.step = {7};
    p.shape.replicas = {{{{{1}, {0, 1}}, {{2}, {1, 2}}}, {0, 2}}, {{{{3}, {0, 2}}}, {2, 4}}};
    for (std::uint64_t n : {1, 2, 3, 4})
      p.members.push_back({{{n}, {1}}, {"h", static_cast<std::uint16_t>(n), 0}});
    return p;
  }
  std::vector<member_action> prepared() { return step(from_runner{runner_prepared{{4}, {{0, 5}}}}); }
  void train() {
    join();
    order(plan());
    prepared();
    order(commit{{1}, {4}});
  }
  std::vector<member_action> halted(step_id applied = {7}) {
    standing now_at;
    now_at.applied = applied;
    now_at.blocks = {{0, 5}};
    return step(from_runner{runner_halted{now_at}});
  }
};

verdict word_on(std::uint64_t view, std::uint64_t step) {
  verdict v;
  v.view = {view};
  v.step = {step};
  return v;
}

}  // namespace

TEST_CASE("a newcomer says hello without a name, and takes the one that it is given", "[core][morph]") {
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
  CHECK(told<heartbeat>(l.tick()).at(0).doing == activity::starting);  // its engine is not there yet
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
  CHECK(l.order(l.plan()).empty());           // term 1, view 4
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

TEST_CASE("another replica's coordinator hears the lead, and its own stage hears it", "[core][morph]") {
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

TEST_CASE("a broken promise of a peer is trouble while training, a failure before", "[core][morph]") {
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

TEST_CASE("training goes on without a supervisor, for as long as the lease lasts", "[core][morph]") {
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
  CHECK(all<exit_node>(l.order(welcome{{2}, {{1}, {1}}, 10, "other"})).at(0).failure == errc::refused);
}

TEST_CASE("a wish to leave is told, also to the next supervisor; a nobody just goes", "[core][morph]") {
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
