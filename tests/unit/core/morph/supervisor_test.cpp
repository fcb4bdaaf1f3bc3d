#include "core/morph/supervisor_machine.hpp"

#include <algorithm>
#include <map>

#include <catch2/catch.hpp>

using namespace shoal;
using namespace shoal::core;

namespace {

/// One replica as deep as there are nodes, at most three blocks; too few below nodes_min.
result<plan_result> deep(const plan_profile&, const std::vector<plan_node>& nodes, const layout&,
                         const job_options& job) {
  if (nodes.size() < job.parallelism.nodes_min) return error{errc::too_few_nodes, "too few"};
  plan_result made;
  replica chain{{}, {0, job.training.micro_batches}};
  auto depth = std::min<std::uint32_t>(3, static_cast<std::uint32_t>(nodes.size()));
  for (std::uint32_t i = 0; i < depth; ++i)
    chain.stages.push_back({nodes[i].node, {i, i + 1 == depth ? 3 : i + 1}});
  made.shape.replicas.push_back(chain);
  made.reason = "deep";
  return made;
}

/// A supervisor and nodes played by hand. Node n speaks through link n, with pid 100 + n.
struct lab {
  job_options job = [] {
    job_options j;
    j.training.steps = 5;
    j.training.micro_batches = 4;
    j.nodes.local = 2;
    j.timeouts.failure = 1s;
    j.timeouts.gather = 50ms;
    j.timeouts.answer = 2s;
    j.timeouts.prepare = 10s;
    j.timeouts.orphan = 30s;
    return j;
  }();
  ledger_state ledger;
  std::vector<step_id> found;
  std::optional<supervisor_machine> s;
  time_point now{100s};
  std::vector<supervisor_action> seen;  // of the last call or pass

  void start() {
    supervisor_options o;
    o.job = job;
    o.job_text = "text";
    o.job_digest = 9;
    o.profile.blocks.resize(3);
    o.ledger = ledger;
    o.plan = deep;
    s.emplace(std::move(o));
    step(checkpoints_found{found});
  }
  void take(std::vector<supervisor_action> actions) {
    for (auto& a : actions)
      if (auto p = std::get_if<persist>(&a)) ledger = p->what;
    seen.insert(seen.end(), actions.begin(), actions.end());
  }
  void step(const supervisor_event& e) {
    seen.clear();
    take(s->step(now, e));
  }
  void say(std::uint64_t link, node_message m) { step(heard{{link}, std::move(m)}); }
  /// Time passes, while `calling` nodes send heartbeats.
  void pass(nanoseconds time, std::vector<std::uint64_t> calling = {}) {
    seen.clear();
    for (auto end = now + time; now < end;) {
      now += 25ms;
      for (auto n : calling) {
        heartbeat b;
        b.from = {{n}, {1}};
        b.view = s->status().view;
        b.doing = activity::training;
        take(s->step(now, heard{{n}, b}));
      }
      take(s->tick(now));
    }
  }
  hello knock(std::uint64_t n, standing where = {}) {
    hello h;
    h.job = 9;
    h.at = {"h", static_cast<std::uint16_t>(n), 0};
    h.process = 100 + n;
    h.now = std::move(where);
    return h;
  }
  void join(std::uint64_t n) { say(n, knock(n)); }
  standing stands(std::uint64_t n, std::uint64_t step = 0, std::vector<block_index> blocks = {}) {
    standing st;
    st.from = {{n}, {1}};
    st.view = s->status().view;
    st.doing = blocks.empty() ? activity::idle : activity::holding;
    st.applied = {step};
    for (auto b : blocks) st.blocks.push_back({b, 1000 * step + b});
    return st;
  }
  void is_ready(std::uint64_t n) {
    ready r;
    r.from = {{n}, {1}};
    r.view = s->status().view;
    say(n, r);
  }
  decided word(std::uint64_t lead, std::uint64_t step, decision what = decision::apply, bool last = false) {
    decided d;
    d.from = {{lead}, {1}};
    d.what.view = s->status().view;
    d.what.step = {step};
    d.what.what = what;
    d.what.last_of_view = last;
    return d;
  }
  /// Nodes 1 and 2 train view 2: 1:[0-0] 2:[1-2].
  void run_two() {
    start();
    join(1);
    join(2);
    say(1, stands(1));
    say(2, stands(2));
    pass(75ms, {1, 2});
    is_ready(1);
    is_ready(2);
  }
  job_state state() const { return s->status().state; }

  template <class T>
  std::vector<T> acts() const {
    std::vector<T> all;
    for (auto& a : seen)
      if (auto t = std::get_if<T>(&a)) all.push_back(*t);
    return all;
  }
  /// Messages of one kind, by link.
  template <class T>
  std::map<std::uint64_t, T> sent() const {
    std::map<std::uint64_t, T> all;
    for (auto& a : acts<send>())
      if (auto t = std::get_if<T>(&a.what)) all.emplace(a.to.value, *t);
    return all;
  }
};

}  // namespace

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

TEST_CASE("a lost node: the survivor halts, takes over, and goes on from the newest step", "[core][morph]") {
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
  CHECK(plan.step == step_id{0});    // nobody has blocks 1 and 2 at step 1
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
  for (auto n : {1, 2, 3}) l.say(static_cast<std::uint64_t>(n), l.stands(static_cast<std::uint64_t>(n)));
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
  failed f{{{1}, {1}}, l.s->status().view, static_cast<std::uint8_t>(errc::damaged), "bad hash", {}, {4}};
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

TEST_CASE("a new supervisor waits for the members that are under way before it halts", "[core][morph]") {
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

TEST_CASE("a view with none of the old members waits until those are known to be dead", "[core][morph]") {
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
  l.pass(200ms, {3});
  CHECK(l.sent<prepare>().size() == 1);
}

TEST_CASE("a member that does not train what it was told to is asked where it stands", "[core][morph]") {
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

TEST_CASE("a returning node keeps its name; another process under that name gets a new life", "[core][morph]") {
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
