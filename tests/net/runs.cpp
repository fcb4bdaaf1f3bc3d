// Runs of configs/tiny.toml, and what can be seen of them from outside.
#include <catch2/catch.hpp>
#include <fstream>
#include <thread>

#include "net/harness.hpp"

namespace shoal::test {

namespace fs = std::filesystem;

std::vector<std::string> tiny(const std::string& subcommand, const fs::path& folder,
                              const std::vector<std::string>& sets) {
  std::vector<std::string> arguments{subcommand, SHOAL_SOURCE_DIR "/configs/tiny.toml", "--set",
                                     "job.folder=" + folder.string()};
  for (auto& set : sets) arguments.insert(arguments.end(), {"--set", set});
  return arguments;
}

void require_end(const outcome& end, int code, const std::vector<std::string>& texts) {
  INFO("stdout:\n" << end.out << "\nstderr:\n" << end.err << "\nexit code -1 is a deadline missed");
  REQUIRE(end.exit_code == code);
  for (auto& text : texts) {
    INFO("looked for: " << text);
    REQUIRE((end.out + end.err).find(text) != std::string::npos);
  }
}

const std::map<std::uint64_t, nlohmann::json>& reference_of(const std::vector<std::string>& sets) {
  static std::map<std::vector<std::string>, std::map<std::uint64_t, nlohmann::json>> known;
  auto found = known.find(sets);
  if (found == known.end()) {
    scratch_folder folder;
    require_end(run(tiny("reference", folder.path, sets)), 0);
    found = known.emplace(sets, steps_of(folder.path / "metrics.jsonl")).first;
  }
  return found->second;
}

bool wait_for_line(const fs::path& folder, const std::function<bool(const nlohmann::json&)>& wanted,
                   std::chrono::milliseconds deadline) {
  auto until = std::chrono::steady_clock::now() + deadline;
  do {
    std::ifstream file(folder / "metrics.jsonl");
    for (std::string line; std::getline(file, line) && !file.eof();)
      if (wanted(nlohmann::json::parse(line))) return true;
    std::this_thread::sleep_for(10ms);
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

bool wait_for_step(const fs::path& folder, std::uint64_t step, std::chrono::milliseconds deadline) {
  auto wanted = [&](const nlohmann::json& line) {
    return !line.contains("event") && line.contains("step") &&
           line["step"].get<std::uint64_t>() >= step;
  };
  return wait_for_line(folder, wanted, deadline);
}

nlohmann::json status_of(const fs::path& folder) {
  auto arguments = tiny("status", folder);
  arguments.push_back("--json");
  auto end = run(arguments, 30s);
  return end.exit_code == 0 ? nlohmann::json::parse(end.out) : nlohmann::json();
}

void require_tidy(const fs::path& folder) {
  INFO("what is left of the run in " << folder);
  REQUIRE(processes_with(folder.string()) == std::vector<int>{});
  if (!fs::is_directory(folder)) return;
  REQUIRE_FALSE(fs::exists(folder / "supervisor.address"));
  for (auto& entry : fs::recursive_directory_iterator(folder)) {
    auto name = entry.path().filename().string();
    INFO(entry.path());
    REQUIRE(name.find(".tmp") == std::string::npos);
    REQUIRE_FALSE(name.ends_with(".new"));
  }
}

}  // namespace shoal::test
