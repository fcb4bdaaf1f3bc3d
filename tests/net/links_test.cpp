// What runs and profiles learn of links between processes.

#include <signal.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "net/harness.hpp"

using namespace shoal::test;

namespace {

std::vector<std::string> profile(const std::filesystem::path& folder,
                                 std::vector<std::string> arguments,
                                 const std::vector<std::string>& sets = {}) {
  auto all = tiny("profile", folder, sets);
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

}  // namespace

TEST_CASE("a running job measures the link that it emulates, and its bits do not notice",
          "[net][links]") {
  // Activations of 128 KiB: large enough to be measured.
  const std::vector<std::string> sets{"training.micro_batch_size=32", "training.steps=12",
                                      "lr_scheduler.warmup_steps=4"};
  auto& reference = reference_of(sets);
  scratch_folder folder;
  auto job = folder.path / "run";
  auto slow = sets;
  slow.insert(slow.end(), {"emulate.rate=25MB/s", "emulate.delay=1ms", "parallelism.depth=3"});
  program train(tiny("run", job, slow));
  REQUIRE(wait_for_step(job, 8));
  auto status = status_of(job);
  INFO(status.dump());
  auto rate = status["link_bytes_per_s"].get<double>();
  CHECK(rate != 25e6);  // as it was estimated: nothing was measured
  CHECK(rate == Approx(25e6).epsilon(0.2));
  // Known from the start were the delay and 100 us; measured is the delay, loopback and handling.
  auto latency = status["link_latency_s"].get<double>();
  CHECK(latency != Approx(1.1e-3).epsilon(1e-6));
  CHECK(latency > 1e-3);
  require_end(train.wait(), 0);
  CHECK(compare(steps_of(job / "metrics.jsonl"), reference) == reference.size());
  require_tidy(job);
}

TEST_CASE("two processes measure the link between them, and a plan counts on it", "[net][links]") {
  scratch_folder folder;
  const std::vector<std::string> slow{"emulate.rate=10MB/s", "emulate.delay=5ms"};
  auto at = "127.0.0.1:" + std::to_string(free_port());
  auto file = (folder.path / "p.json").string();
  program answerer(profile(folder.path, {"--answer", at, "--for", "2min"}, slow));
  REQUIRE_FALSE(answerer.wait_for("answering probes at " + at, 30s).empty());
  auto made = run(profile(folder.path, {"--peer", at, "-o", file}, slow), 120s);
  require_end(made, 0);
  CHECK_THAT(made.out, Catch::Contains("127.0.0.1 to " + at + ", one way:"));
  CHECK_THAT(made.out, Catch::Contains(at + " to 127.0.0.1, one way:"));
  auto json = nlohmann::json::parse(std::ifstream(file));
  REQUIRE(json["pairs"].size() == 2);
  for (auto& pair : json["pairs"]) {
    auto& messages = pair["messages"];
    REQUIRE(messages.size() == 5);
    CHECK(messages[0]["one_way"]["s"].get<double>() == Approx(0.005).epsilon(0.3));
    CHECK(messages[4]["one_way"]["s"].get<double>() ==
          Approx(0.005 + 16 * 1.048576 / 10).epsilon(0.1));
  }
  auto plan = tiny("plan", folder.path);
  plan.insert(plan.end(), {"-n", "3", "--profile", file});
  auto planned = run(plan, 60s);
  require_end(planned, 0, {});
  CHECK_THAT(planned.out, Catch::Contains("link: the slowest of 2 measured, "));
  CHECK_THAT(planned.out, Catch::Contains("127.0.0.1 to " + at + ", one way:"));
  plan.push_back("--json");
  auto line = nlohmann::json::parse(run(plan, 60s).out);
  CHECK(line["link"]["latency_s"].get<double>() == Approx(0.005).epsilon(0.3));
  CHECK(line["link"]["pairs"] == 2);

  // Another job is sent away; the answerer goes on, and ends when it is asked to.
  auto foreign = run(profile(folder.path, {"--peer", at}, {"model.layers=3"}), 60s);
  CHECK(foreign.exit_code == 30);
  CHECK_THAT(foreign.err, Catch::Contains("peer " + at) && Catch::Contains("same job file"));
  CHECK_FALSE(answerer.wait_for("away: the job's digest", 10s).empty());
  answerer.signal(SIGTERM);
  CHECK(answerer.wait(10s).exit_code == 0);
}

TEST_CASE("a peer that nobody answers at is named, before blocks are measured", "[net][links]") {
  scratch_folder folder;
  auto at = "127.0.0.1:" + std::to_string(free_port());
  auto end = run(profile(folder.path, {"--peer", at}), 30s);
  require_end(end, 75, {"peer " + at, "--answer " + at});
}

TEST_CASE("an answerer ends by itself, and a taken port is an error", "[net][links]") {
  scratch_folder folder;
  auto taken = socket_to::listen();
  auto at = "127.0.0.1:" + std::to_string(taken.port());
  require_end(run(profile(folder.path, {"--answer", at}), 30s), 11, {at});
  auto free = "127.0.0.1:" + std::to_string(free_port());
  require_end(run(profile(folder.path, {"--answer", free, "--for", "1s"}), 30s), 0,
              {"answering probes at " + free});
}
