// Whole jobs through real sockets: a supervisor and nodes, each with an actor system of its own.

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <set>

#include <catch2/catch.hpp>

#include "actors/system.hpp"
#include "paper_runner.hpp"

using namespace shoal;
using namespace shoal::actors;
using namespace std::chrono_literals;

namespace {

constexpr auto loopback = "127.0.0.1";
constexpr std::uint32_t block_count = 6;

core::job_options short_job(std::uint32_t steps) {
  core::job_options job;
  job.training.steps = steps;
  job.training.micro_batches = 8;
  job.parallelism.nodes_min = 2;
  job.parallelism.depth = 2;
  job.timeouts.failure = 500ms;
  job.timeouts.gather = 20ms;
  job.timeouts.answer = 2s;
  return job;
}

/// What a test knows of a supervisor: everything that it told.
struct witness {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<core::step_done> steps;
  std::vector<core::report> reports;
  std::vector<core::ledger_state> ledgers;
  std::optional<core::finished> end;
  std::function<result<void>()> disk = [] { return result<void>(); };

  template <class F>
  bool wait_for(F condition) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 20s, condition);
  }
  void note(auto how) {
    std::lock_guard lock(mutex);
    how();
    changed.notify_all();
  }
  std::uint64_t newest() const { return steps.empty() ? 0 : steps.back().what.what.step.value; }
  std::size_t count(core::report_kind kind) const {
    return static_cast<std::size_t>(std::ranges::count(reports, kind, &core::report::kind));
  }
  supervisor_ports ports() {
    return {
      .persist =
        [this](const core::ledger_state& state) {
          note([&] { ledgers.push_back(state); });
          return disk();
        },
      .reported = [this](auto& what, auto&) { note([&] { reports.push_back(what); }); },
      .stepped = [this](auto& what) { note([&] { steps.push_back(what); }); },
      .finished = [this](auto& what) { note([&] { end = what; }); },
      .describe =
        [](auto& status) { return "{\"nodes\": " + std::to_string(status.nodes.size()) + "}"; },
    };
  }
};

core::supervisor_options options_of(const core::job_options& job, core::ledger_state ledger = {}) {
  core::supervisor_options options;
  options.job = job;
  options.job_text = "the job";
  options.job_digest = 4711;
  options.ledger = std::move(ledger);
  for (block_index b = 0; b < block_count; ++b)
    options.profile.blocks.push_back({"block", 1ms, 2ms, 1000, 2000, 100, 100});
  return options;
}

std::unique_ptr<supervisor_host> supervise(witness& seen, const core::job_options& job,
                                           std::uint16_t port = 0, core::ledger_state ledger = {}) {
  auto options = options_of(job, std::move(ledger));
  auto host = supervisor_host::start(loopback, port, options, {}, seen.ports());
  if (!host) FAIL(host.error().text);
  return *std::move(host);
}

/// A node and what it trains with.
struct member {
  std::shared_ptr<paper_runner> runner;
  std::unique_ptr<node_host> host;  // gone before the runner
  std::mutex mutex;
  std::multiset<std::uint64_t> completed;  // checkpoints

  member(const core::job_options& job, std::uint16_t supervisor) {
    node_host_options options;
    options.supervisor_host = loopback;
    options.supervisor_port = supervisor;
    options.join_timeout = 10s;
    options.make_engine = [this, job](const std::string& text, std::uint64_t digest, auto sink) {
      CHECK((text == "the job" && digest == 4711));
      runner = std::make_shared<paper_runner>(job, sink);
      return engine_of(job);
    };
    auto started = node_host::start(options);
    if (!started) FAIL(started.error().text);
    host = *std::move(started);
  }

  result<node_engine> engine_of(const core::job_options& job) {
    node_engine engine{
      .job = job, .runner = runner.get(), .block_count = block_count, .write = {}, .complete = {}};
    engine.write = [](const core::runner_snapshot& shot, auto done) {
      core::parts_written parts{{}, shot.view, shot.step, {}, ""};
      for (auto& b : shot.blocks) parts.parts.push_back({b.block, "file", 1, 2, b.digest});
      done(parts);
    };
    engine.complete = [this](step_id step, auto parts, auto done) {
      CHECK(parts.size() == block_count);
      std::lock_guard lock(mutex);
      completed.insert(step.value);
      done(result<void>());
    };
    return engine;
  }
};

using members = std::vector<std::unique_ptr<member>>;

members start(std::size_t count, const core::job_options& job, std::uint16_t supervisor) {
  members all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(std::make_unique<member>(job, supervisor));
  return all;
}

void check_all_ended_well(const members& all) {
  for (auto& node : all) {
    auto end = node->host->wait(5s);
    REQUIRE(end);
    INFO(end->reason);
    CHECK_FALSE(end->failure);
  }
}

/// A raw connection to a port, to say what none of ours would.
struct stranger {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  explicit stranger(std::uint16_t port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    ::inet_pton(AF_INET, loopback, &at.sin_addr);
    REQUIRE(::connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
  }
  ~stranger() { ::close(fd); }
  void say(const std::string& bytes) {
    REQUIRE(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }
};

}  // namespace

TEST_CASE("three nodes train a job to its end", "[actor][net]") {
  witness seen;
  auto job = short_job(30);
  job.checkpoint.every = 10;
  auto supervisor = supervise(seen, job);
  auto nodes = start(3, job, supervisor->port());
  REQUIRE(seen.wait_for([&] { return seen.end.has_value(); }));
  INFO(seen.end->reason);
  CHECK_FALSE(seen.end->failure);
  CHECK(seen.newest() == 31);
  for (std::size_t i = 0; i < seen.steps.size(); ++i)
    CHECK(seen.steps[i].what.what.step.value == i + 1);
  check_all_ended_well(nodes);
  std::multiset<std::uint64_t> completed;
  for (auto& node : nodes) completed.insert(node->completed.begin(), node->completed.end());
  CHECK(completed == std::multiset<std::uint64_t>{10, 20, 30});
}

TEST_CASE("a node that is torn away costs the others no step", "[actor][net]") {
  witness seen;
  auto job = short_job(2000);
  auto supervisor = supervise(seen, job);
  auto nodes = start(3, job, supervisor->port());
  REQUIRE(seen.wait_for([&] { return seen.newest() >= 20; }));
  nodes.pop_back();
  REQUIRE(seen.wait_for([&] { return seen.end.has_value(); }));
  INFO(seen.end->reason);
  CHECK_FALSE(seen.end->failure);
  CHECK(seen.count(core::report_kind::lost) == 1);
  check_all_ended_well(nodes);
}

TEST_CASE("a node that leaves is let go, one that comes is used", "[actor][net]") {
  witness seen;
  auto job = short_job(3000);
  auto supervisor = supervise(seen, job);
  auto nodes = start(3, job, supervisor->port());
  REQUIRE(seen.wait_for([&] { return seen.newest() >= 10; }));
  nodes[0]->host->leave("the test says so");
  auto left = nodes[0]->host->wait(20s);
  REQUIRE(left);
  CHECK_FALSE(left->failure);
  auto late = std::make_unique<member>(job, supervisor->port());
  REQUIRE(seen.wait_for([&] { return seen.end.has_value(); }));
  CHECK_FALSE(seen.end->failure);
  CHECK(late->host->wait(5s));
}

TEST_CASE("training goes on without the supervisor, and a new one adopts it", "[actor][net]") {
  witness first, second;
  auto job = short_job(1'000'000);
  auto supervisor = supervise(first, job);
  auto port = supervisor->port();
  auto nodes = start(3, job, port);
  REQUIRE(first.wait_for([&] { return first.newest() >= 10; }));
  supervisor.reset();
  auto successor = supervise(second, job, port, first.ledgers.back());
  REQUIRE(second.wait_for([&] { return second.steps.size() >= 10; }));
  CHECK(second.steps.front().what.what.view == first.steps.back().what.what.view);
  CHECK(second.steps.front().what.what.step > first.steps.back().what.what.step);
  successor->tell(core::stop_asked{errc::interrupted, "enough"});
  REQUIRE(second.wait_for([&] { return second.end.has_value(); }));
  for (auto& node : nodes) {
    auto end = node->host->wait(5s);
    REQUIRE(end);
    CHECK(end->failure == errc::interrupted);
  }
}

TEST_CASE("questions are answered, and wrong addresses say what is wrong", "[actor][net]") {
  witness seen;
  auto supervisor = supervise(seen, short_job(5));
  auto port = supervisor->port();
  auto answer = ask_supervisor(loopback, port, "status", {}, 5s);
  REQUIRE(answer);
  CHECK(*answer == "{\"nodes\": 0}");
  auto nonsense = ask_supervisor(loopback, port, "nonsense", {}, 5s);
  REQUIRE_FALSE(nonsense);
  CHECK(nonsense.error().code == errc::refused);
  supervisor.reset();
  auto nobody = ask_supervisor(loopback, port, "status", {}, 5s);
  REQUIRE_FALSE(nobody);
  CHECK(nobody.error().code == errc::unreachable);
  CHECK(nobody.error().text.find(std::to_string(port)) != std::string::npos);
}

TEST_CASE("a port that is taken is named", "[actor][net]") {
  witness seen;
  auto supervisor = supervise(seen, short_job(5));
  auto options = options_of(short_job(5));
  auto second = supervisor_host::start(loopback, supervisor->port(), options, {}, seen.ports());
  REQUIRE_FALSE(second);
  CHECK(second.error().code == errc::port_in_use);
  CHECK(second.error().text.find("127.0.0.1:" + std::to_string(supervisor->port())) !=
        std::string::npos);
  auto nowhere = supervisor_host::start("203.0.113.7", 0, options, {}, seen.ports());
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().code == errc::config);
  auto everywhere = supervisor_host::start("", 0, options, {}, seen.ports());
  REQUIRE_FALSE(everywhere);
  CHECK(everywhere.error().code == errc::config);
}

TEST_CASE("strangers on the control port do no harm", "[actor][net][fault]") {
  witness seen;
  auto job = short_job(50);
  auto supervisor = supervise(seen, job);
  stranger silent(supervisor->port());
  stranger web(supervisor->port());
  web.say("GET / HTTP/1.1\r\nHost: example\r\n\r\nand much more of the same, to be sure");
  stranger noise(supervisor->port());
  noise.say(std::string(4096, '\xff'));
  auto nodes = start(2, job, supervisor->port());
  REQUIRE(seen.wait_for([&] { return seen.end.has_value(); }));
  CHECK_FALSE(seen.end->failure);
  check_all_ended_well(nodes);
}

TEST_CASE("a node that finds no supervisor says so and ends", "[actor][net]") {
  node_host_options options;
  options.supervisor_host = loopback;
  options.supervisor_port = 1;
  options.join_timeout = 200ms;
  auto node = node_host::start(options);
  REQUIRE(node);
  auto end = (*node)->wait(10s);
  REQUIRE(end);
  CHECK(end->failure == errc::unreachable);
  CHECK(end->reason == "nobody listens at 127.0.0.1:1; is the supervisor running?");
}

TEST_CASE("a ledger that cannot be written stops the job and its nodes", "[actor][net][fault]") {
  witness seen;
  auto job = short_job(1'000'000);
  auto supervisor = supervise(seen, job);
  auto nodes = start(2, job, supervisor->port());
  REQUIRE(seen.wait_for([&] { return seen.newest() >= 5; }));
  seen.note([&] { seen.disk = [] { return result<void>(errc::no_space, "the disk is full"); }; });
  auto late = std::make_unique<member>(job, supervisor->port());  // needs a new id, to be persisted
  REQUIRE(seen.wait_for([&] { return seen.end.has_value(); }));
  CHECK(seen.end->failure == errc::no_space);
  for (auto& node : nodes) {
    auto end = node->host->wait(5s);
    REQUIRE(end);
    CHECK(end->failure == errc::no_space);
  }
}
