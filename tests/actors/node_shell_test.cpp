// The NODE's shell and its children under CAF's deterministic scheduler: a neighbour in the place
// of the supervisor, one in the place of the middleman that dials, a clock moved by hand.

#include <algorithm>
#include <map>

#include <catch2/catch.hpp>

#include "actors/node.hpp"
#include "paper_runner.hpp"
#include "still_system.hpp"

using namespace shoal;
using namespace shoal::actors;

namespace {

constexpr std::uint16_t court = 100;  // the supervisor's port

/// Who listens where, as the one who dials sees it.
struct town {
  still_system world;
  std::map<std::uint16_t, caf::strong_actor_ptr> houses;
  std::map<std::uint16_t, std::set<std::string>> signs;
  std::map<std::uint16_t, int> calls;
  caf::error excuse = caf::sec::cannot_connect_to_node;
  dialer operator_;

  town() {
    operator_ = world.invite<dialer>([this]() -> dialer::behavior_type {
      return {[this](caf::connect_atom, const std::string&, std::uint16_t port)
                -> caf::result<caf::node_id, caf::strong_actor_ptr, std::set<std::string>> {
        ++calls[port];
        if (!houses.contains(port)) return excuse;
        return {world.system.node(), houses[port], signs[port]};
      }};
    });
  }
  template <class Handle>
  void open(std::uint16_t port, const Handle& who) {
    houses[port] = caf::actor_cast<caf::strong_actor_ptr>(who);
    signs[port] = world.system.message_types(caf::detail::type_list<Handle>{});
  }
};

/// A neighbour in the place of the SUPERVISOR.
struct judge {
  supervisor_actor actor;
  std::shared_ptr<std::vector<core::node_message>> log =
    std::make_shared<std::vector<core::node_message>>();

  explicit judge(town& at) {
    auto note = [log = log](auto& m) { log->push_back(m); };
    actor = at.world.invite<supervisor_actor>([note]() -> supervisor_actor::behavior_type {
      return {
        [note](const core::hello& m) { note(m); },
        [note](const core::standing& m) { note(m); },
        [note](const core::ready& m) { note(m); },
        [note](const core::failed& m) { note(m); },
        [note](const core::heartbeat& m) { note(m); },
        [note](const core::trouble& m) { note(m); },
        [note](const core::leaving& m) { note(m); },
        [note](const core::decided& m) { note(m); },
        [note](const core::diverged& m) { note(m); },
        [note](const core::checkpoint_done& m) { note(m); },
        [](const core::question&) { return core::answer{}; },
      };
    });
    at.open(court, actor);
  }
  template <class T>
  std::vector<T> got() const {
    return only<T>(*log);
  }
};

core::job_options the_job() {
  core::job_options job;
  job.training.steps = 3;
  job.training.micro_batches = 4;
  job.timeouts.answer = 1s;
  job.checkpoint.every = 1;
  return job;
}

/// One node of the town.
struct citizen {
  town& at;
  core::sender name;
  std::uint16_t port;
  std::optional<node_end> end;
  std::vector<std::string> said;
  std::function<void(result<node_engine>)> made;  // the maker's answer, when `slow`
  bool slow = false;
  std::unique_ptr<paper_runner> runner;
  std::vector<step_id> completed;
  node_inside actor;

  citizen(town& where, std::uint64_t id, core::nanoseconds join_timeout = 1h)
    : at(where), name{node_id{id}, incarnation_id{1}}, port(static_cast<std::uint16_t>(id)) {
    node_options options;
    options.me.at = {"127.0.0.1", 0, port};
    options.me.process = id;
    options.supervisor_host = "127.0.0.1";
    options.supervisor_port = court;
    options.join_timeout = join_timeout;
    options.through = at.operator_;
    options.control_port = [this] { return port; };
    options.make_engine = [this](const core::welcome&, auto sink, auto done) {
      runner = std::make_unique<paper_runner>(the_job(), sink);
      if (slow)
        made = done;
      else
        done(engine());
    };
    options.ended = [this](node_end what) { end = what; };
    options.log = [this](const std::string& text) { said.push_back(text); };
    actor = at.world.keep(spawn_state<node_inside, node_state>(at.world.system, options));
    at.open(port, node_actor{actor});
  }

  node_engine engine() {
    return {.job = the_job(),
            .runner = runner.get(),
            .block_count = 2,
            .write =
              [](const core::runner_snapshot& shot, auto done) {
                core::parts_written parts{{}, shot.view, shot.step, {}, ""};
                for (auto& b : shot.blocks) parts.parts.push_back({b.block, "f", 1, 2, b.digest});
                done(parts);
              },
            .complete =
              [this](step_id step, auto, auto done) {
                completed.push_back(step);
                done(result<void>());
              }};
  }
  void start() {
    caf::anon_send(actor, knock{});
    at.world.scheduler.run();
  }
  core::member as_member() const { return {name, {"127.0.0.1", port, port}}; }
};

core::prepare plan_for(std::vector<core::stage> stages, std::vector<core::member> members) {
  core::prepare plan{.term = {1},
                     .view = {1},
                     .step = {},
                     .roll_forward = {},
                     .shape = {},
                     .members = {},
                     .missing = {},
                     .checkpoint = {}};
  plan.shape.replicas.push_back({std::move(stages), {0, 4}});
  plan.members = std::move(members);
  return plan;
}

/// Lets `node` in.
void admit(town& at, const judge& supervisor, const citizen& node) {
  at.world.say(supervisor.actor, node_actor{node.actor},
               core::welcome{{1}, node.name, 1, "the job"});
}

template <class T>
void command(town& at, const judge& supervisor, const citizen& node, T what) {
  at.world.say(supervisor.actor, node_actor{node.actor}, what);
}

}  // namespace

TEST_CASE("a node knocks until it is heard, ever less often, and says why only once", "[actor]") {
  town t;
  citizen ann(t, 1);
  ann.start();
  t.world.pass(5s);
  CHECK(t.calls[court] >= 8);
  CHECK(t.calls[court] <= 16);
  CHECK(ann.said == std::vector<std::string>{"nobody listens at 127.0.0.1:100; knocking again"});
  judge supervisor(t);
  t.world.pass(2s);
  REQUIRE(supervisor.got<core::hello>().size() == 1);
  CHECK(supervisor.got<core::hello>()[0].at.control_port == 1);
}

TEST_CASE("a supervisor of another version ends the node at once", "[actor]") {
  town t;
  t.excuse = caf::sec::incompatible_application_ids;
  citizen ann(t, 1);
  ann.start();
  REQUIRE(ann.end);
  CHECK(ann.end->failure == errc::refused);
}

TEST_CASE("what is no supervisor is not spoken to", "[actor]") {
  town t;
  citizen ann(t, 1), bob(t, 2);
  t.open(court, node_actor{bob.actor});
  ann.start();
  t.world.pass(1s);
  CHECK(t.calls[court] > 1);
  CHECK(ann.said.size() == 1);
  CHECK(ann.said[0] == "what listens at 127.0.0.1:100 does not speak our protocol; knocking again");
}

TEST_CASE("heartbeats go on while the engine is made, and commands wait for it", "[actor]") {
  town t;
  judge supervisor(t);
  citizen ann(t, 1);
  ann.slow = true;
  ann.start();
  admit(t, supervisor, ann);
  command(t, supervisor, ann, plan_for({{{1}, {0, 2}}}, {ann.as_member()}));
  t.world.pass(500ms);
  auto beats = supervisor.got<core::heartbeat>();
  REQUIRE(beats.size() >= 5);
  CHECK(beats.back().doing == core::activity::starting);
  CHECK(supervisor.got<core::ready>().empty());
  SECTION("it is made") {
    ann.made(ann.engine());
    t.world.scheduler.run();
    CHECK(supervisor.got<core::ready>().size() == 1);
    CHECK(supervisor.got<core::heartbeat>().back().doing != core::activity::starting);
  }
  SECTION("it cannot be made") {
    ann.made(error{errc::data, "no data here"});
    t.world.scheduler.run();
    REQUIRE(ann.end);
    CHECK(ann.end->failure == errc::data);
    CHECK(ann.end->reason == "no data here");
  }
}

TEST_CASE("two nodes train a view: reports, verdicts, decisions, checkpoints find their way",
          "[actor]") {
  town t;
  judge supervisor(t);
  citizen ann(t, 1), bob(t, 2);
  auto plan = plan_for({{{1}, {0, 1}}, {{2}, {1, 2}}}, {ann.as_member(), bob.as_member()});
  for (auto* node : {&ann, &bob}) {
    node->start();
    admit(t, supervisor, *node);
    command(t, supervisor, *node, plan);
  }
  REQUIRE(supervisor.got<core::ready>().size() == 2);
  command(t, supervisor, bob, core::commit{{1}, {1}});
  CHECK(supervisor.got<core::decided>().empty());
  command(t, supervisor, ann, core::commit{{1}, {1}});
  auto decided = supervisor.got<core::decided>();
  REQUIRE(decided.size() == 4);
  CHECK(decided.back().what.what == core::decision::finish);
  CHECK(decided.back().digest_before ==
        core::model_digest({paper_digest(0, {3}), paper_digest(1, {3})}));
  CHECK(supervisor.got<core::standing>().size() == 2);
  CHECK(ann.completed == std::vector<step_id>{{1}, {2}, {3}});
  CHECK(bob.completed.empty());
  CHECK(supervisor.got<core::checkpoint_done>().size() == 3);
  CHECK(t.calls[1] == 1);  // bob dials ann, and is answered on the same road
  CHECK(t.calls[2] == 0);
}

TEST_CASE("a halt is answered with a standing", "[actor]") {
  town t;
  judge supervisor(t);
  citizen ann(t, 1);
  ann.start();
  admit(t, supervisor, ann);
  command(t, supervisor, ann, plan_for({{{1}, {0, 2}}}, {ann.as_member()}));
  command(t, supervisor, ann, core::halt{{1}, {2}});
  REQUIRE(supervisor.got<core::standing>().size() == 1);
  CHECK(supervisor.got<core::standing>()[0].view == view_id{2});
  CHECK(supervisor.got<core::standing>()[0].blocks.size() == 2);
}

TEST_CASE("a peer that cannot be reached is tried again, and becomes trouble in the end",
          "[actor]") {
  town t;
  judge supervisor(t);
  citizen ann(t, 1), bob(t, 2);
  auto plan = plan_for({{{1}, {0, 1}}, {{2}, {1, 2}}}, {ann.as_member(), bob.as_member()});
  bob.start();
  admit(t, supervisor, bob);
  t.houses.erase(1);
  command(t, supervisor, bob, plan);
  command(t, supervisor, bob, core::commit{{1}, {1}});
  t.world.pass(500ms);
  CHECK(t.calls[1] > 3);
  CHECK(supervisor.got<core::trouble>().empty());
  SECTION("it comes back in time") {
    t.open(1, node_actor{ann.actor});
    t.world.pass(1500ms);
    CHECK(supervisor.got<core::trouble>().empty());
  }
  SECTION("it does not") {
    t.world.pass(1500ms);
    REQUIRE(supervisor.got<core::trouble>().size() == 1);
    CHECK(supervisor.got<core::trouble>()[0].peer == node_id{1});
  }
}

TEST_CASE("a peer whose connection ends is trouble", "[actor]") {
  town t;
  judge supervisor(t);
  citizen ann(t, 1), bob(t, 2);
  auto plan = plan_for({{{1}, {0, 1}}, {{2}, {1, 2}}}, {ann.as_member(), bob.as_member()});
  bob.start();
  admit(t, supervisor, bob);
  command(t, supervisor, bob, plan);
  command(t, supervisor, bob, core::commit{{1}, {1}});
  t.world.end(ann.actor);
  t.world.pass(50ms);
  REQUIRE(supervisor.got<core::trouble>().size() == 1);
  CHECK(supervisor.got<core::trouble>()[0].peer == node_id{1});
}

TEST_CASE("a node that loses its supervisor, or is dropped, knocks again with its name",
          "[actor]") {
  town t;
  judge first(t);
  citizen ann(t, 1);
  ann.start();
  admit(t, first, ann);
  judge second(t);
  SECTION("lost") { t.world.end(first.actor); }
  SECTION("dropped") { command(t, first, ann, core::dropped{}); }
  t.world.pass(1s);
  REQUIRE(second.got<core::hello>().size() == 1);
  CHECK(second.got<core::hello>()[0].now.from == ann.name);
  // Words of the one before are no longer heard.
  command(t, first, ann, core::stop{{1}, 0, "too late"});
  CHECK_FALSE(ann.end);
}

TEST_CASE("a node ends when it is told to, or refused; its children with it", "[actor]") {
  town t;
  judge supervisor(t);
  citizen ann(t, 1);
  ann.start();
  SECTION("told") {
    admit(t, supervisor, ann);
    command(t, supervisor, ann, core::stop{{1}, 0, "the job is over"});
    REQUIRE(ann.end);
    CHECK_FALSE(ann.end->failure);
    CHECK(ann.end->reason == "the job is over");
  }
  SECTION("refused") {
    command(t, supervisor, ann,
            core::refused{static_cast<std::uint8_t>(errc::foreign), "another job"});
    REQUIRE(ann.end);
    CHECK(ann.end->failure == errc::foreign);
  }
  t.world.pass(1s);
  CHECK(t.world.system.registry().running() == 2);  // who dials, and the supervisor's neighbour
}

TEST_CASE("a node that is asked to leave tells the supervisor", "[actor]") {
  town t;
  judge supervisor(t);
  citizen ann(t, 1);
  ann.start();
  admit(t, supervisor, ann);
  caf::anon_send(ann.actor, make_local<core::member_event>(core::leave_signal{"SIGTERM"}));
  t.world.scheduler.run();
  REQUIRE(supervisor.got<core::leaving>().size() == 1);
  CHECK(supervisor.got<core::leaving>()[0].reason == "SIGTERM");
}
