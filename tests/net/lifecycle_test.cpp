// Stopping and going on: what Ctrl-C leaves, what a second run makes of it, and a folder that two
// want.

#include <signal.h>

#include <catch2/catch.hpp>

#include "net/harness.hpp"

using namespace shoal::test;
namespace fs = std::filesystem;

namespace {

const std::string slow = "emulate.delay=40ms";

}  // namespace

TEST_CASE("a job that was interrupted goes on in another layout", "[net][life]") {
  auto& reference = reference_of();
  auto second = GENERATE(
    as<std::vector<std::string>>{}, std::vector<std::string>{"nodes.local=1"},
    std::vector<std::string>{"nodes.local=4", "parallelism.depth=2", "training.recompute=true"});
  scratch_folder folder;
  auto job = folder.path / "run";
  program first(tiny("run", job, {slow, "checkpoint.every=4"}));
  REQUIRE(wait_for_step(job, 7));
  first.signal(GENERATE(SIGINT, SIGTERM));
  require_end(first.wait(30s), 40, {"interrupted"});
  require_tidy(job);
  auto before = steps_of(job / "metrics.jsonl").size();
  CHECK(before < reference.size());

  second.push_back("checkpoint.every=4");
  require_end(run(tiny("run", job, second), 60s), 0,
              {"digest " + reference.at(20)["digest"].get<std::string>()});
  CHECK(compare(steps_of(job / "metrics.jsonl"), reference) == reference.size());
  require_tidy(job);
}

TEST_CASE("a finished job that is run again says the same and trains nothing", "[net][life]") {
  auto& reference = reference_of();
  scratch_folder folder;
  auto job = folder.path / "run";
  for (int times = 0; times < 2; ++times) {
    require_end(run(tiny("run", job), 60s), 0, {reference.at(20)["digest"].get<std::string>()});
    CHECK(compare(steps_of(job / "metrics.jsonl"), reference) == reference.size());
    require_tidy(job);
  }
}

TEST_CASE("a second Ctrl-C does not wait", "[net][life]") {
  scratch_folder folder;
  auto job = folder.path / "run";
  program train(tiny("run", job, {"emulate.delay=1s"}));
  REQUIRE(wait_for_line(job, [](auto& line) { return line.value("event", "") == "joined"; }));
  train.signal(SIGINT);
  train.signal(SIGINT);
  CHECK(train.wait(10s).exit_code == 40);
  auto gone = std::chrono::steady_clock::now() + 5s;  // the kernel kills the children with us
  while (!processes_with(job.string()).empty() && std::chrono::steady_clock::now() < gone) continue;
  CHECK(processes_with(job.string()).empty());
}

TEST_CASE("Ctrl-C in the first moments leaves nothing either", "[net][life]") {
  scratch_folder folder;
  auto job = folder.path / "run";
  program train(tiny("run", job, {slow}));
  REQUIRE(wait_for_line(job, [](auto& line) { return line.value("event", "") == "started"; }));
  train.signal(SIGINT);
  CHECK(train.wait(30s).exit_code == 40);
  require_tidy(job);
}

TEST_CASE("a folder has one supervisor", "[net][life]") {
  auto& reference = reference_of();
  scratch_folder folder;
  auto job = folder.path / "run";
  program first(tiny("run", job, {slow}));
  REQUIRE(wait_for_step(job, 1));
  auto second = run(tiny("run", job, {slow}), 30s);
  INFO(second.out << second.err);
  CHECK((second.exit_code != 0 && second.exit_code != -1));
  CHECK(second.err.find(job.string()) != std::string::npos);
  CHECK(second.err.find(std::to_string(first.pid())) != std::string::npos);
  require_end(first.wait(), 0);
  CHECK(compare(steps_of(job / "metrics.jsonl"), reference) == reference.size());
  require_tidy(job);
}

TEST_CASE("status and leave say who is not there", "[net][life]") {
  scratch_folder folder;
  require_end(run(tiny("status", folder.path / "run"), 30s), 75,
              {"supervisor.address", "no supervisor"});
  require_end(run({"status", "127.0.0.1:" + std::to_string(free_port())}, 30s), 75, {"127.0.0.1"});
}
