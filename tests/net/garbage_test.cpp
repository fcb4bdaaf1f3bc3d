// Strangers at the ports of a job that trains: what does not speak our protocol is shown the door,
// and the job ends as if nobody had knocked.

#include <signal.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <random>

#include "net/harness.hpp"

using namespace shoal::test;

namespace {

/// What a lost port scanner, browser or old version may send.
std::vector<std::string> nonsense() {
  std::mt19937_64 random(7);
  std::string noise(4096, '\0');
  for (auto& c : noise) c = static_cast<char>(random());
  return {noise,
          "GET / HTTP/1.1\r\nHost: shoal\r\n\r\n",
          std::string(64, '\0'),
          std::string(64, '\xff'),
          "S",
          "SHOL" + noise,
          ""};
}

void pester(std::uint16_t port) {
  INFO("port " << port);
  for (auto& bytes : nonsense()) {
    auto stranger = socket_to::connect(port);
    REQUIRE(stranger.open());
    stranger.send(bytes);
  }
  std::vector<socket_to> silent;  // neither do those disturb who say nothing and stay
  for (int i = 0; i < 8; ++i) silent.push_back(socket_to::connect(port));
}

}  // namespace

TEST_CASE("garbage on control and tensor ports disturbs no step", "[net][input]") {
  auto& reference = reference_of();
  scratch_folder folder;
  auto job = folder.path / "run";
  program train(tiny("run", job, {"emulate.delay=250ms"}));
  REQUIRE(wait_for_step(job, 1));
  auto status = status_of(job);
  INFO(status.dump());
  REQUIRE(status["nodes"].size() == 3);
  for (auto& node : status["nodes"]) {
    pester(node["control_port"].get<std::uint16_t>());
    pester(node["tensor_port"].get<std::uint16_t>());
  }
  std::ifstream address(job / "supervisor.address");
  std::string at;
  REQUIRE(address >> at);
  pester(static_cast<std::uint16_t>(std::stoi(at.substr(at.rfind(':') + 1))));
  require_end(train.wait(), 0, {"through 0 morphs"});
  CHECK(compare(steps_of(job / "metrics.jsonl"), reference) == reference.size());
  require_tidy(job);
}

TEST_CASE("a node refuses the supervisor of another job at the old address", "[net][input]") {
  scratch_folder folder;
  auto port = free_port();
  auto fixed = "network.control_port=" + std::to_string(port);
  auto at = "127.0.0.1:" + std::to_string(port);
  program first(tiny("supervisor", folder.path / "first",
                     {fixed, "emulate.delay=200ms", "parallelism.nodes_min=2"}));
  program one({"node", "--join", at}), two({"node", "--join", at});
  REQUIRE(wait_for_step(folder.path / "first", 2));
  first.signal(SIGKILL);
  first.wait();
  program second(tiny("supervisor", folder.path / "second", {fixed, "job.seed=8"}));
  require_end(one.wait(), 30, {"job"});
  require_end(two.wait(), 30, {"job"});
  second.signal(SIGTERM);
  require_end(second.wait(), 40);
  require_tidy(folder.path / "second");
}

TEST_CASE("a node that nobody welcomes says so and gives up", "[net][input]") {
  auto port = std::to_string(free_port());
  auto end = run({"node", "--join", "127.0.0.1:" + port}, 90s);
  require_end(end, 75, {"127.0.0.1:" + port, "is the supervisor running?"});
}
