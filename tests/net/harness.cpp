#include "net/harness.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

namespace shoal::test {

namespace fs = std::filesystem;

namespace {

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

[[noreturn]] void become(const std::vector<std::string>& arguments, const fs::path& files) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Inherited by what the program starts: by this a child of its is known to be ours.
  std::string family;
  for (auto& argument : arguments) family += argument + " ";
  ::setenv("SHOAL_TEST_FAMILY", family.c_str(), 1);
  auto out = ::open((files / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  auto err = ::open((files / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  auto null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, 0);
  ::dup2(out, 1);
  ::dup2(err, 2);
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

}  // namespace

scratch_folder::scratch_folder() {
  std::string name = (fs::temp_directory_path() / "shoal-test-XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  path = name;
}

scratch_folder::~scratch_folder() {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

program::program(std::vector<std::string> arguments, fs::path folder) {
  auto* binary = std::getenv("SHOAL_PROGRAM");
  arguments.insert(arguments.begin(), binary != nullptr ? binary : SHOAL_PROGRAM_DEFAULT);
  if (!folder.empty()) fs::create_directories(folder);
  pid_ = ::fork();
  REQUIRE(pid_ >= 0);
  if (pid_ == 0) {
    if (!folder.empty() && ::chdir(folder.c_str()) != 0) ::_exit(127);
    become(arguments, files_.path);
  }
}

program::~program() {
  if (running()) ::kill(pid_, SIGKILL);
  if (!reaped_) ::waitpid(pid_, &status_, 0);
}

void program::signal(int number) {
  if (running()) ::kill(pid_, number);
}

bool program::running() {
  if (!reaped_ && ::waitpid(pid_, &status_, WNOHANG) == pid_) reaped_ = true;
  return !reaped_;
}

std::string program::output() const {
  return read_file(files_.path / "out") + read_file(files_.path / "err");
}

outcome program::wait(std::chrono::milliseconds deadline) {
  auto until = std::chrono::steady_clock::now() + deadline;
  while (running() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(10ms);
  outcome end;
  if (running()) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status_, 0);
    reaped_ = true;
    end.exit_code = -1;
  } else {
    end.exit_code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  }
  end.out = read_file(files_.path / "out");
  end.err = read_file(files_.path / "err");
  return end;
}

std::string program::wait_for(const std::string& text, std::chrono::milliseconds deadline) {
  auto until = std::chrono::steady_clock::now() + deadline;
  for (;;) {
    bool was_running = running();
    auto all = output();
    if (auto at = all.find(text); at != std::string::npos)
      if (auto end = all.find('\n', at); end != std::string::npos) return all.substr(0, end);
    if (!was_running || std::chrono::steady_clock::now() > until) return {};
    std::this_thread::sleep_for(10ms);
  }
}

outcome run(std::vector<std::string> arguments, std::chrono::milliseconds deadline) {
  return program(std::move(arguments)).wait(deadline);
}

std::map<std::uint64_t, nlohmann::json> steps_of(const fs::path& metrics) {
  std::ifstream file(metrics);
  INFO("metrics file " << metrics);
  REQUIRE(file.good());
  std::map<std::uint64_t, nlohmann::json> steps;
  for (std::string line; std::getline(file, line);) {
    auto json = nlohmann::json::parse(line);
    if (!json.contains("step") || json.contains("event")) continue;
    auto step = json["step"].get<std::uint64_t>();
    INFO("step " << step << " stands twice");
    REQUIRE(steps.emplace(step, json).second);
  }
  return steps;
}

std::vector<nlohmann::json> events_in(const fs::path& metrics) {
  std::ifstream file(metrics);
  std::vector<nlohmann::json> events;
  for (std::string line; std::getline(file, line);)
    if (auto json = nlohmann::json::parse(line); json.contains("event")) events.push_back(json);
  return events;
}

std::vector<int> processes_with(const std::string& text) {
  std::vector<int> found;
  for (auto& entry : fs::directory_iterator("/proc")) {
    auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    auto pid = std::stoi(name);
    if (pid == ::getpid()) continue;
    auto mark = "SHOAL_TEST_FAMILY=";
    auto words = read_file(entry.path() / "cmdline");  // of a zombie: empty, like its environment
    auto environment = read_file(entry.path() / "environ");
    if (auto at = environment.find(mark); at != std::string::npos)
      words += environment.substr(at, environment.find('\0', at) - at);
    if (words.find(text) != std::string::npos) found.push_back(pid);
  }
  return found;
}

std::size_t compare(const std::map<std::uint64_t, nlohmann::json>& run,
                    const std::map<std::uint64_t, nlohmann::json>& reference, bool all_told) {
  std::size_t compared = 0;
  for (auto& [step, line] : run) {
    auto found = reference.find(step);
    INFO("step " << step << "\n  run       " << line << "\n  reference "
                 << (found == reference.end() ? "has no such step" : found->second.dump()));
    REQUIRE(found != reference.end());
    for (auto* key : {"digest", "loss", "validation_loss"})
      if (all_told || line.contains(key))
        REQUIRE(line.value(key, nlohmann::json()) == found->second.value(key, nlohmann::json()));
    ++compared;
  }
  return compared;
}

}  // namespace shoal::test
