#pragma once
// Runs the real program as a user would, and looks at what it leaves behind.

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
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

/// `SUBCOMMAND configs/tiny.toml` with a folder of its own and further `--set KEY=VALUE`s.
std::vector<std::string> tiny(const std::string& subcommand, const std::filesystem::path& folder,
                              const std::vector<std::string>& sets = {});

/// Fails the test unless the program ended by itself with `code` and told each of `texts`.
void require_end(const outcome& end, int code, const std::vector<std::string>& texts = {});

/// The lines of a metrics.jsonl by step, the step lines only. A step that stands twice fails the
/// test that reads it.
std::map<std::uint64_t, nlohmann::json> steps_of(const std::filesystem::path& metrics);

/// Step lines of one undisturbed process with these settings; made once for each `sets`.
const std::map<std::uint64_t, nlohmann::json>& reference_of(
  const std::vector<std::string>& sets = {});

/// The other lines of a metrics.jsonl, in order. A file that does not exist has none.
std::vector<nlohmann::json> events_in(const std::filesystem::path& metrics);

/// Waits until `folder`/metrics.jsonl has a line for which `wanted` holds; false at the deadline.
bool wait_for_line(const std::filesystem::path& folder,
                   const std::function<bool(const nlohmann::json&)>& wanted,
                   std::chrono::milliseconds deadline = 60s);
/// The same for the line of `step` or a later one.
bool wait_for_step(const std::filesystem::path& folder, std::uint64_t step,
                   std::chrono::milliseconds deadline = 60s);

/// What `shoal status --json` says of the job in `folder`; null when nobody answers.
nlohmann::json status_of(const std::filesystem::path& folder);

/// Processes whose command line, or that of the test program's child they come from, holds `text`.
/// Neither ourselves nor the dead whom nobody has buried yet.
std::vector<int> processes_with(const std::string& text);

/// Fails the test if a run in `folder` left a process, an address or a temporary file behind.
void require_tidy(const std::filesystem::path& folder);

/// A TCP port of 127.0.0.1 that nobody listens at.
std::uint16_t free_port();

/// A TCP connection or a listening socket of 127.0.0.1.
class socket_to {
public:
  static socket_to listen();
  static socket_to connect(std::uint16_t port);
  explicit socket_to(int fd) : fd_(fd) {}
  socket_to(socket_to&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~socket_to();

  bool open() const { return fd_ >= 0; }
  std::uint16_t port() const;  ///< our own
  void send(const std::string& bytes);
  /// Whether the other side closes within `deadline`, whatever it says before.
  bool closed_by_peer(std::chrono::milliseconds deadline = 10s);

private:
  int fd_;
};

/// Fails the calling test at the first step whose digest or validation loss differs, naming it;
/// returns how many steps were compared. Not `all_told`: steps that were decided while there was no
/// supervisor may lack what nobody was there to write down.
std::size_t compare(const std::map<std::uint64_t, nlohmann::json>& run,
                    const std::map<std::uint64_t, nlohmann::json>& reference, bool all_told = true);

}  // namespace shoal::test
