// Nodes that go and come in every way there is, one at a time; in the end every step of the run is
// that of one undisturbed process.

#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>

#include "net/harness.hpp"

using namespace shoal::test;
namespace fs = std::filesystem;

namespace {

const std::string slow = "emulate.delay=40ms";

/// `model`: what the job sets beside the tiny job's own.
void same_as_reference(const fs::path& job, bool all_told = true,
                       const std::vector<std::string>& model = {}) {
  auto& reference = reference_of(model);
  auto steps = steps_of(job / "metrics.jsonl");
  auto compared = compare(steps, reference, all_told);
  if (all_told) CHECK(compared == reference.size());
  CHECK(steps.rbegin()->first == reference.rbegin()->first);
  CHECK(steps.rbegin()->second["digest"] == reference.rbegin()->second["digest"]);
  require_tidy(job);
}

std::size_t count(const fs::path& job, const std::string& event) {
  auto events = events_in(job / "metrics.jsonl");
  return static_cast<std::size_t>(
    std::ranges::count_if(events, [&](auto& e) { return e["event"] == event; }));
}

auto is_event(const std::string& name) {
  return [name](const nlohmann::json& line) { return line.value("event", "") == name; };
}

}  // namespace

TEST_CASE("all nodes are killed at once: the job goes on from disk", "[net][morph]") {
  scratch_folder folder;
  auto job = folder.path / "run";
  auto events =
    "churn.event=[{at_step = 12, action = \"kill\", count = 3}, {at_step = 12, action = \"join\", "
    "count = 2}]";
  auto end = run(tiny("run", job, {"emulate.delay=20ms", events}), 60s);
  require_end(end, 0, {"from step 10"});
  same_as_reference(job);
}

TEST_CASE("all nodes are killed before any checkpoint: the job begins again", "[net][morph]") {
  scratch_folder folder;
  auto job = folder.path / "run";
  auto events =
    "churn.event=[{at_step = 4, action = \"kill\", count = 3}, {at_step = 4, action = \"join\", "
    "count = 1}]";
  require_end(run(tiny("run", job, {"emulate.delay=20ms", events}), 60s), 0);
  same_as_reference(job);
}

TEST_CASE("in every order of passes a killed node is replaced, and no bit changes",
          "[net][morph]") {
  scratch_folder folder;
  auto job = folder.path / "run";
  auto order = GENERATE("gpipe", "1f1b-searched", "interleaved-1f1b", "varuna", "auto");
  INFO(order);
  auto events =
    "churn.event=[{at_step = 6, action = \"kill\", count = 1}, {at_step = 9, action = \"join\", "
    "count = 1}]";
  std::vector<std::string> sets{std::string("parallelism.schedule=") + order, "emulate.delay=20ms",
                                "parallelism.depth=3", events};
  if (order == std::string("varuna")) sets.push_back("training.recompute=true");
  require_end(run(tiny("run", job, sets), 60s), 0);
  CHECK(count(job, "morph") >= 2);
  same_as_reference(job);
}

TEST_CASE("a stage that would not fit recomputes by the planner's choice, and no bit changes",
          "[net][morph]") {
  scratch_folder folder;
  auto job = folder.path / "run";
  auto events =
    "churn.event=[{at_step = 6, action = \"kill\", count = 1}, {at_step = 6, action = \"join\", "
    "count = 1}]";
  // Three stages of this model fit into 359 MiB if the first keeps only its inputs.
  std::vector<std::string> model{"training.micro_batch_size=8", "model.seq_len=128",
                                 "training.steps=10"};
  auto sets = model;
  sets.insert(sets.end(),
              {"parallelism.depth=3", "training.recompute=auto", "nodes.memory=359MiB", events});
  require_end(run(tiny("run", job, sets), 60s), 0);
  CHECK(count(job, "morph") >= 1);
  auto recomputes = [](const nlohmann::json& line) {
    return line.value("layout", "").find("]r ") != std::string::npos;
  };
  CHECK(wait_for_line(job, recomputes, 1s));
  same_as_reference(job, true, model);
}

TEST_CASE("a node that is asked to leave hands over and ends with 0", "[net][morph]") {
  scratch_folder folder;
  auto job = folder.path / "run";
  program train(tiny("run", job, {slow, "parallelism.depth=3"}));
  REQUIRE(wait_for_step(job, 2));
  auto before = status_of(job);
  INFO(before.dump());
  REQUIRE(before["nodes"].size() == 3);
  auto& node = before["nodes"][1];
  auto pid = node["pid"].get<int>();
  SECTION("by shoal leave") {
    auto arguments = tiny("leave", job);
    arguments.insert(arguments.end(), {"--node", node["node"].dump()});
    require_end(run(arguments, 30s), 0, {"asked to leave"});
  }
  SECTION("by SIGTERM") { REQUIRE(::kill(pid, SIGTERM) == 0); }
  auto ended = [pid](const nlohmann::json& line) {
    return line.value("event", "") == "exited" && line["pid"] == pid && line["code"] == 0;
  };
  REQUIRE(wait_for_line(job, ended, 30s));
  require_end(train.wait(), 0);
  CHECK(count(job, "morph") >= 1);
  CHECK(count(job, "lost") == 0);
  same_as_reference(job);
}

TEST_CASE("leave of a node that is not there is refused", "[net][morph]") {
  scratch_folder folder;
  auto job = folder.path / "run";
  program train(tiny("run", job, {slow}));
  REQUIRE(wait_for_step(job, 1));
  auto arguments = tiny("leave", job);
  arguments.insert(arguments.end(), {"--node", "77"});
  require_end(run(arguments, 30s), 2, {"no live node 77", "shoal status"});
  require_end(train.wait(), 0, {"through 0 morphs"});
}

TEST_CASE("a node that is frozen is left behind, and does no harm when it wakes", "[net][morph]") {
  scratch_folder folder;
  auto job = folder.path / "run";
  program train(tiny("run", job, {slow, "timeouts.failure=1s", "parallelism.depth=3"}));
  REQUIRE(wait_for_step(job, 3));
  auto before = status_of(job);
  REQUIRE(before["nodes"].size() == 3);
  auto pid = before["nodes"][GENERATE(0, 1)]["pid"].get<int>();
  REQUIRE(::kill(pid, SIGSTOP) == 0);
  bool morphed = wait_for_line(job, is_event("morph"), 30s);
  REQUIRE(::kill(pid, SIGCONT) == 0);
  INFO(before.dump());
  REQUIRE(morphed);
  require_end(train.wait(), 0);
  CHECK(count(job, "lost") >= 1);
  same_as_reference(job);
}

TEST_CASE("a killed supervisor is missed by nobody: nodes train on and the next one adopts them",
          "[net][morph]") {
  scratch_folder folder;
  auto job = folder.path / "run";
  auto port = free_port();
  auto at = "127.0.0.1:" + std::to_string(port);
  std::vector<std::string> sets{"network.control_port=" + std::to_string(port),
                                "emulate.delay=100ms", "parallelism.nodes_min=2",
                                "parallelism.depth=2"};
  program first(tiny("supervisor", job, sets));
  program one({"node", "--join", at}), two({"node", "--join", at});
  REQUIRE(wait_for_step(job, 2));
  first.signal(SIGKILL);
  first.wait();
  program second(tiny("supervisor", job, sets));
  auto end = second.wait(90s);
  require_end(end, 0, {"through 0 morphs"});
  INFO(end.out);
  CHECK(end.out.find("preparing view") == std::string::npos);
  CHECK(one.wait(30s).exit_code == 0);
  CHECK(two.wait(30s).exit_code == 0);
  same_as_reference(job, false);
}

TEST_CASE("with fewer nodes than it needs the job waits, then goes on", "[net][morph]") {
  scratch_folder folder;
  auto job = folder.path / "run";
  auto port = free_port();
  auto at = "127.0.0.1:" + std::to_string(port);
  program supervisor(
    tiny("supervisor", job,
         {"network.control_port=" + std::to_string(port), slow, "parallelism.nodes_min=2"}));
  program one({"node", "--join", at});
  REQUIRE_FALSE(supervisor.wait_for("waiting", 30s).empty());
  CHECK(steps_of(job / "metrics.jsonl").empty());
  {
    program two({"node", "--join", at});
    REQUIRE(wait_for_step(job, 3));
  }  // killed
  REQUIRE(wait_for_line(job, is_event("holding"), 30s));
  program three({"node", "--join", at});
  require_end(supervisor.wait(60s), 0);
  CHECK(one.wait(30s).exit_code == 0);
  CHECK(three.wait(30s).exit_code == 0);
  same_as_reference(job);
}
