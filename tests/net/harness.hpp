#pragma once
// Runs the real program as a user would, and looks at what it leaves behind.

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace shoal::test {

using namespace std::chrono_literals;

/// A folder of this test alone, gone with it.
class scratch_folder {
public:
  scratch_folder();
  ~scratch_folder();
  std::filesystem::path path;
};

/// How a program ended. `exit_code` is 128 + the signal when one ended it, -1 at the deadline.
struct outcome {
  int exit_code = 0;
  std::string out;  ///< stdout
  std::string err;  ///< stderr
};

/// A running `shoal` with its output in files. Killed at the end of its life if it still runs.
class program {
public:
  explicit program(std::vector<std::string> arguments, std::filesystem::path folder = {});
  ~program();
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  void signal(int number);
  /// Waits until it ends; kills it at the deadline.
  outcome wait(std::chrono::milliseconds deadline = 120s);
  /// Waits until stdout or stderr holds `text`, and returns everything up to the end of that line;
  /// empty at the deadline or when the program ends without it.
  std::string wait_for(const std::string& text, std::chrono::milliseconds deadline = 60s);
  bool running();
  int pid() const { return pid_; }

private:
  std::string output() const;

  scratch_folder files_;
  int pid_ = -1;
  int status_ = 0;
  bool reaped_ = false;
};

/// Runs to the end.
outcome run(std::vector<std::string> arguments, std::chrono::milliseconds deadline = 120s);

/// The lines of a metrics.jsonl by step, the step lines only. A step that stands twice fails the
/// test that reads it.
std::map<std::uint64_t, nlohmann::json> steps_of(const std::filesystem::path& metrics);

/// Processes of this user whose command line holds `text`, without ourselves.
std::vector<int> processes_with(const std::string& text);

/// Fails the calling test at the first step whose digest or validation loss differs, naming it;
/// returns how many steps were compared.
std::size_t compare(const std::map<std::uint64_t, nlohmann::json>& run,
                    const std::map<std::uint64_t, nlohmann::json>& reference);

}  // namespace shoal::test
