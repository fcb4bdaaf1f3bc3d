// Real processes, real signals: nodes are killed, asked to leave and started at random moments
// while a job runs, some of them during a morph; after every step the weights are those of one
// process.

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>

#include "net/harness.hpp"

using namespace shoal::test;

namespace {

std::uint32_t random_events() {
  auto* wish = std::getenv("SHOAL_CHAOS_EVENTS");
  return wish != nullptr ? static_cast<std::uint32_t>(std::atoi(wish)) : 20;
}

std::uint64_t chaos_seed() {
  auto* wish = std::getenv("SHOAL_CHAOS_SEED");
  if (wish != nullptr) return std::strtoull(wish, nullptr, 10);
  return static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count() %
                                    1000000);
}

std::vector<nlohmann::json> events_of(const std::filesystem::path& metrics) {
  std::ifstream file(metrics);
  std::vector<nlohmann::json> events;
  for (std::string line; std::getline(file, line);)
    if (auto json = nlohmann::json::parse(line); json.contains("event")) events.push_back(json);
  return events;
}

std::vector<std::string> job_in(const std::filesystem::path& folder, std::uint32_t steps) {
  return {SHOAL_SOURCE_DIR "/configs/tiny.toml", "--set", "job.folder=" + folder.string(), "--set",
          "training.steps=" + std::to_string(steps)};
}

}  // namespace

TEST_CASE("random kills, leaves and joins do not change a bit of any step", "[net][chaos]") {
  auto events = random_events();
  auto seed = chaos_seed();
  auto steps = 20 + 14 * events;
  std::cout << "chaos: " << events << " events from seed " << seed << " over " << steps
            << " steps (SHOAL_CHAOS_SEED, SHOAL_CHAOS_EVENTS)" << std::endl;
  INFO("SHOAL_CHAOS_SEED=" << seed);
  scratch_folder folder;
  auto reference_arguments = job_in(folder.path / "reference", steps);
  reference_arguments.insert(reference_arguments.begin(), "reference");
  auto reference = run(reference_arguments, 600s);
  INFO(reference.err);
  REQUIRE(reference.exit_code == 0);

  auto arguments = job_in(folder.path / "run", steps);
  arguments.insert(arguments.begin(), "run");
  for (auto set :
       {"nodes.local=4", "churn.nodes_max=6", "churn.nodes_min=2", "churn.steps_between=10"})
    arguments.insert(arguments.end(), {"--set", set});
  arguments.insert(arguments.end(), {"--set", "churn.seed=" + std::to_string(seed)});
  arguments.insert(arguments.end(), {"--set", "churn.random_events=" + std::to_string(events)});
  auto chaos = run(arguments, std::chrono::seconds(240 + 20 * events));
  INFO("stdout of the run:\n" << chaos.out << "\nstderr of the run:\n" << chaos.err);
  REQUIRE(chaos.exit_code == 0);

  auto metrics = folder.path / "run" / "metrics.jsonl";
  auto compared = compare(steps_of(metrics), steps_of(folder.path / "reference" / "metrics.jsonl"));
  CHECK(compared >= steps);

  // Every event happened, and no process was started that the churn did not ask for: a survivor
  // that had been restarted would be one too many.
  std::size_t done = 0, joins = 0;
  std::set<int> pids;
  for (auto& event : events_of(metrics)) {
    if (event["event"] == "churn") {
      ++done;
      if (event["action"] == "join") joins += event["count"].get<std::size_t>();
    }
    if (event["event"] == "started") pids.insert(event["pid"].get<int>());
    if (event["event"] == "exited") {
      INFO(event.dump());
      auto code = event["code"].get<int>();
      CHECK(event["expected"].get<bool>());
      CHECK((code == 0 || code == 128 + SIGKILL || code == 128 + SIGTERM));
    }
  }
  CHECK(chaos.err.find("Sanitizer") == std::string::npos);  // of a build that has them
  CHECK(done == events);
  CHECK(pids.size() <= 4 + joins);
  CHECK(processes_with(folder.path.string()).empty());
  for (auto& entry : std::filesystem::recursive_directory_iterator(folder.path))
    CHECK(entry.path().string().find(".tmp") == std::string::npos);
}
