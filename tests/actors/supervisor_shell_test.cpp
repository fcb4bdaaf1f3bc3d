// The SUPERVISOR's shell under CAF's deterministic scheduler: neighbours that only listen, a clock
// moved by hand. What the machine decides is tested in unit/core/morph.

#include <algorithm>

#include <catch2/catch.hpp>

#include "actors/supervisor.hpp"
#include "paper_runner.hpp"
#include "still_system.hpp"

using namespace shoal;
using namespace shoal::actors;

namespace {

using told = std::variant<core::welcome, core::refused, core::halt, core::prepare, core::commit,
                          core::drain, core::stop, core::lease, core::dropped>;

/// A neighbour in the place of a NODE: notes what it is told.
struct listener {
  node_actor actor;
  std::shared_ptr<std::vector<told>> log = std::make_shared<std::vector<told>>();

  explicit listener(still_system& world) {
    auto note = [log = log](auto& m) { log->push_back(m); };
    actor = world.invite<node_actor>([note]() -> node_actor::behavior_type {
      return {
        [note](const core::welcome& m) { note(m); }, [note](const core::refused& m) { note(m); },
        [note](const core::halt& m) { note(m); },    [note](const core::prepare& m) { note(m); },
        [note](const core::commit& m) { note(m); },  [note](const core::drain& m) { note(m); },
        [note](const core::stop& m) { note(m); },    [note](const core::lease& m) { note(m); },
        [note](const core::dropped& m) { note(m); }, [](const core::stage_report&) {},
        [](const core::replica_report&) {},          [](const core::mailed_verdict&) {},
        [](const core::parts_written&) {},
      };
    });
  }
  template <class T>
  std::vector<T> got() const {
    return only<T>(*log);
  }
  core::sender name() const { return got<core::welcome>().back().you; }
};

core::hello hello_of(std::uint64_t process, core::sender who = {}) {
  core::hello hello;
  hello.at = {"127.0.0.1", 1, 2};
  hello.process = process;
  hello.now.from = who;
  return hello;
}

/// A supervisor of a job of four blocks, and all that it told the program.
struct court {
  still_system world;
  std::vector<std::string> order;  ///< names of what the ports were asked, in order
  std::vector<core::report> reports;
  std::vector<core::step_done> steps;
  std::optional<core::finished> end;
  std::function<result<void>()> disk = [] { return result<void>(); };
  supervisor_inside supervisor;

  court() {
    core::supervisor_options options;
    options.job.parallelism.nodes_min = 2;
    options.job.training.micro_batches = 4;
    options.job.timeouts.failure = 400ms;
    for (int i = 0; i < 4; ++i) options.profile.blocks.push_back({"b", 1ms, 2ms, 10, 20, 1, 1});
    supervisor_ports ports{
      .persist =
        [this](auto&) {
          order.push_back("persist");
          return disk();
        },
      .reported = [this](auto& what, auto&) { reports.push_back(what); },
      .stepped = [this](auto& what) { steps.push_back(what); },
      .finished = [this](auto& what) { end = what; },
      .describe = [](auto& status) -> std::string {
        if (status.nodes.size() == 1) throw std::runtime_error("no words");
        return std::string(status.nodes.size() == 3 ? core::answer_bytes_max + 1 : 7, 'x');
      },
    };
    supervisor = world.keep(spawn_state<supervisor_inside, supervisor_state>(
      world.system, options, ports, std::vector<step_id>{}));
  }

  void beat(const listener& node, core::activity doing = core::activity::idle, view_id view = {}) {
    core::heartbeat beat;
    beat.from = node.name();
    beat.doing = doing;
    beat.view = view;
    world.say(node.actor, supervisor, beat);
  }
  /// Answers a halt.
  void stand(const listener& node) {
    core::standing now;
    now.from = node.name();
    now.view = node.got<core::halt>().back().view;
    world.say(node.actor, supervisor, now);
  }
  void be_ready(const listener& node) {
    auto plan = node.got<core::prepare>().back();
    core::ready ready{node.name(), plan.view, {}};
    core::place at;
    REQUIRE(core::find_place(plan.shape, node.name().node, at));
    for (auto b : plan.shape.replicas[at.replica].stages[at.stage].blocks.all())
      ready.blocks.push_back({b, paper_digest(b, {})});
    world.say(node.actor, supervisor, ready);
  }
  /// Two nodes from their hello to their commit.
  void start(const listener& ann, const listener& bob) {
    world.say(ann.actor, supervisor, hello_of(1));
    world.say(bob.actor, supervisor, hello_of(2));
    beat(ann);
    beat(bob);
    for (int i = 0; i < 100 && bob.got<core::halt>().empty(); ++i) {
      world.pass(50ms);
      beat(ann);
      beat(bob);
    }
    stand(ann);
    stand(bob);
    for (int i = 0; i < 100 && bob.got<core::prepare>().empty(); ++i) world.pass(10ms);
    be_ready(ann);
    be_ready(bob);
  }
};

}  // namespace

TEST_CASE("a hello is answered with a welcome, again the same, after the ledger", "[actor]") {
  court c;
  listener ann(c.world);
  auto persisted = c.order.size();
  c.world.say(ann.actor, c.supervisor, hello_of(1));
  c.world.say(ann.actor, c.supervisor, hello_of(1));
  auto welcomes = ann.got<core::welcome>();
  REQUIRE(welcomes.size() == 2);
  CHECK(welcomes[0] == welcomes[1]);
  CHECK(c.order.size() == persisted + 1);
}

TEST_CASE("heartbeats are answered with leases", "[actor]") {
  court c;
  listener ann(c.world);
  c.world.say(ann.actor, c.supervisor, hello_of(1));
  core::heartbeat beat;
  beat.from = ann.name();
  beat.at_ns = 4711;
  c.world.say(ann.actor, c.supervisor, beat);
  REQUIRE(ann.got<core::lease>().size() == 1);
  CHECK(ann.got<core::lease>()[0].at_ns == 4711);
}

TEST_CASE("two nodes are halted, prepared and committed; a decision reaches the program",
          "[actor]") {
  court c;
  listener ann(c.world), bob(c.world);
  c.start(ann, bob);
  REQUIRE(ann.got<core::commit>().size() == 1);
  REQUIRE(bob.got<core::commit>().size() == 1);
  core::decided word;
  word.from = ann.name();
  word.what.view = ann.got<core::commit>()[0].view;
  word.what.step = {1};
  c.world.say(ann.actor, c.supervisor, word);
  REQUIRE(c.steps.size() == 1);
  CHECK(c.steps[0].what == word);
}

TEST_CASE("a node whose connection ends is lost, and the others are halted", "[actor]") {
  court c;
  listener ann(c.world), bob(c.world);
  c.start(ann, bob);
  auto halts = ann.got<core::halt>().size();
  c.world.end(bob.actor);
  c.world.scheduler.run();
  CHECK(ann.got<core::halt>().size() == halts + 1);
  CHECK(std::ranges::count(c.reports, core::report_kind::lost, &core::report::kind) == 1);
}

TEST_CASE("a silent node is given up, told so, and let in again when it knocks", "[actor]") {
  court c;
  listener ann(c.world);
  c.world.say(ann.actor, c.supervisor, hello_of(1));
  auto who = ann.name();
  c.world.pass(2s);
  REQUIRE(ann.got<core::dropped>().size() == 1);
  c.world.say(ann.actor, c.supervisor, hello_of(1, who));
  REQUIRE(ann.got<core::welcome>().size() == 2);
  CHECK(ann.name().node == who.node);
}

TEST_CASE("who has not said hello is told to, and nobody's words are nobody's", "[actor]") {
  court c;
  listener ann(c.world);
  core::heartbeat beat;
  beat.from = {node_id{1}, incarnation_id{1}};
  c.world.say(ann.actor, c.supervisor, beat);
  CHECK(ann.got<core::dropped>().size() == 1);
  CHECK(ann.log->size() == 1);
  caf::anon_send(c.supervisor, beat);
  caf::anon_send(c.supervisor, hello_of(1));
  c.world.scheduler.run();
  CHECK(std::ranges::count(c.reports, core::report_kind::joined, &core::report::kind) == 0);
}

TEST_CASE("a question that cannot be answered is refused, and the job lives on", "[actor]") {
  court c;
  std::vector<core::answer> answers;
  auto ask = [&](const std::string& what) {
    caf::scoped_actor self{c.world.system};
    self->send(c.supervisor, core::question{what, {}});
    c.world.scheduler.run();
    self->receive([&](const core::answer& a) { answers.push_back(a); }, caf::after(0s) >> [] {});
    return answers.back();
  };
  CHECK(ask("status") == core::answer{false, "xxxxxxx"});
  CHECK(ask("dance").refused);
  listener ann(c.world), bob(c.world), cid(c.world);
  c.world.say(ann.actor, c.supervisor, hello_of(1));
  CHECK(ask("status") == core::answer{true, "the status cannot be told: no words"});
  c.world.say(bob.actor, c.supervisor, hello_of(2));
  c.world.say(cid.actor, c.supervisor, hello_of(3));
  CHECK(ask("status") == core::answer{true, "the status is too long to be sent"});
}

TEST_CASE("what relies on the ledger is not sent when it cannot be written", "[actor][fault]") {
  court c;
  listener ann(c.world), bob(c.world);
  c.world.say(ann.actor, c.supervisor, hello_of(1));
  c.disk = [] { return result<void>(errc::no_space, "full"); };
  c.world.say(bob.actor, c.supervisor, hello_of(2));
  CHECK(bob.got<core::welcome>().empty());
  REQUIRE(c.end);
  CHECK(c.end->failure == errc::no_space);
  REQUIRE(ann.got<core::stop>().size() == 1);
}

TEST_CASE("a supervisor that hangs up waits for its nodes, but not for long", "[actor]") {
  court c;
  listener ann(c.world);
  c.world.say(ann.actor, c.supervisor, hello_of(1));
  bool ended = false;
  c.supervisor->attach_functor([&](const caf::error&) { ended = true; });
  caf::anon_send(c.supervisor, hang_up{});
  c.world.pass(300ms);
  CHECK_FALSE(ended);
  SECTION("they hang up") { c.world.end(ann.actor); }
  SECTION("they do not") { c.world.pass(300ms); }
  c.world.scheduler.run();
  CHECK(ended);
}
