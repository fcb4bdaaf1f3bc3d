// `shoal run` and `shoal supervisor`: a reign, and for `run` the local nodes that serve it.

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <set>

#include "app/churn.hpp"
#include "app/commands.hpp"
#include "app/process_host.hpp"
#include "app/signals.hpp"
#include "app/supervision.hpp"
#include "telemetry/words.hpp"

namespace shoal::app {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// Processes that failed by themselves are replaced so often, then the job ends.
constexpr std::uint32_t restarts_max = 3;

/// The child processes of `shoal run`: starts them, plays the churn, replaces those that crash.
class local_nodes {
public:
  local_nodes(const core::job_options& job, bool insecure, supervision& reign)
    : job_(job),
      reign_(reign),
      churn_(job.churn),
      program_(std::filesystem::read_symlink("/proc/self/exe").string()),
      arguments_{"node",   "--join",         job.network.host + ":" + std::to_string(reign.port()),
                 "--host", job.network.host, "--quiet"},
      processes_([this](pid_t pid, int code) { ended(pid, code); }) {
    if (insecure) arguments_.push_back("--insecure");
  }

  result<void> start(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      TRY(auto pid, processes_.start(program_, arguments_));
      reign_.log().event("started", {{"pid", pid}}, "");
    }
    return {};
  }

  /// What is due now; and what has become of the processes. An error ends the job.
  result<void> tend() {
    TRY_VOID(bury());
    for (auto& step : churn_.due(clock::now(), reign_.step(), live())) TRY_VOID(play(step));
    return {};
  }

  std::optional<clock::time_point> wake_at() const { return churn_.wake_at(); }

  void stop(bool gently) {
    stopping_ = true;
    processes_.stop_all(gently, gently ? 5s : 0s);
  }

private:
  struct obituary {
    pid_t pid;
    int code;
  };

  std::uint32_t live() const {
    std::uint32_t count = 0;
    for (auto pid : processes_.children()) count += going_.contains(pid) ? 0 : 1;
    return count;
  }

  /// From the host's thread.
  void ended(pid_t pid, int code) {
    reign_.tell(core::node_exited{static_cast<std::uint64_t>(pid), {}});
    std::lock_guard lock(mutex_);
    dead_.push_back({pid, code});
  }

  result<void> bury() {
    std::vector<obituary> dead;
    {
      std::lock_guard lock(mutex_);
      dead.swap(dead_);
    }
    for (auto& [pid, code] : dead) {
      auto expected = going_.erase(pid) > 0 || stopping_ || code == 0;
      reign_.log().event(
        "exited", {{"pid", pid}, {"code", code}, {"expected", expected}},
        expected ? ""
                 : "node process " + std::to_string(pid) + " ended with " + std::to_string(code));
      if (expected) continue;
      if (++restarts_ > restarts_max)
        return {errc::no_progress, "local nodes ended by themselves " + std::to_string(restarts_) +
                                     " times, the last with exit code " + std::to_string(code) +
                                     "; see their messages above"};
      TRY_VOID(start(1));
    }
    return {};
  }

  result<void> play(const churn_step& step) {
    std::vector<pid_t> chosen;
    if (step.action == core::churn_action::join) {
      TRY_VOID(start(step.count));
    } else {
      std::vector<pid_t> candidates;
      for (auto pid : processes_.children())
        if (!going_.contains(pid)) candidates.push_back(pid);
      for (auto word : step.choice) {
        if (candidates.empty()) break;
        auto at = candidates.begin() + static_cast<std::ptrdiff_t>(word % candidates.size());
        chosen.push_back(*at);
        candidates.erase(at);
      }
    }
    const char* verb = step.action == core::churn_action::join   ? "join"
                       : step.action == core::churn_action::kill ? "kill"
                                                                 : "leave";
    reign_.log().event(
      "churn", {{"action", verb}, {"count", step.count}, {"pids", chosen}, {"step", reign_.step()}},
      "churn: " + std::string(verb) + " " + std::to_string(step.count));
    for (auto pid : chosen) {
      going_.insert(pid);
      processes_.signal(pid, step.action == core::churn_action::kill ? SIGKILL : SIGTERM);
    }
    return {};
  }

  const core::job_options& job_;
  supervision& reign_;
  churn churn_;
  std::string program_;
  std::vector<std::string> arguments_;
  std::set<pid_t> going_;  // signalled, not yet ended
  std::uint32_t restarts_ = 0;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::vector<obituary> dead_;
  process_host processes_;  // last: its thread uses the above
};

void tell(const output_options& output, const char* command, const core::job_options& job,
          const run_summary& s) {
  if (output.json) {
    nlohmann::ordered_json line{{"command", command},
                                {"job", job.name},
                                {"steps", job.training.steps},
                                {"digest", telemetry::hex_digest(s.digest)},
                                {"morphs", s.morphs}};
    if (s.loss_first) line["loss_first"] = *s.loss_first;
    if (s.loss_last) line["loss_last"] = *s.loss_last;
    if (s.validation_loss) line["validation_loss"] = *s.validation_loss;
    std::puts(line.dump().c_str());
  } else if (!output.quiet) {
    std::printf("digest %s of the weights after step %u, through %u morphs\n",
                telemetry::hex_digest(s.digest).c_str(), job.training.steps, s.morphs);
  }
}

/// The user's wish to stop, as an event for the supervisor. The second one does not wait.
std::function<void(int)> stop_on_signal(std::atomic<supervision*>& reign) {
  return [&reign, count = 0](int) mutable {
    auto* here = reign.load();
    if (++count > 1 || here == nullptr) ::_exit(exit_code(errc::interrupted));
    here->tell(core::stop_asked{errc::interrupted, "interrupted"});
  };
}

}  // namespace

result<void> run(const run_options& options, const job_file& file, const trainer& mine) {
  std::atomic<supervision*> here = nullptr;
  signal_watch signals({SIGINT, SIGTERM}, stop_on_signal(here));
  TRY(auto reign, supervision::start(file.job, options.insecure, options.output, mine));
  here = reign.get();
  std::optional<result<void>> end;
  {
    local_nodes nodes(file.job, options.insecure, *reign);
    result<void> tended = nodes.start(file.job.nodes.local);
    while (!end) {
      auto until = clock::now() + 50ms;
      if (auto wake = nodes.wake_at()) until = std::min(until, *wake);
      end = reign->wait(until);
      if (tended && !end) tended = nodes.tend();
      if (!tended && tended.error().code != errc::halted) {
        reign->tell(core::stop_asked{tended.error().code, tended.error().text});
        tended = {errc::halted, "the supervisor has been told"};
      }
    }
    nodes.stop(true);
  }
  here = nullptr;
  if (*end) tell(options.output, "run", file.job, reign->summary());
  return *end;
}

result<void> supervise(const supervisor_options& options, const job_file& file,
                       const trainer& mine) {
  std::atomic<supervision*> here = nullptr;
  signal_watch signals({SIGINT, SIGTERM}, stop_on_signal(here));
  TRY(auto reign, supervision::start(file.job, options.insecure, options.output, mine));
  here = reign.get();
  auto& host = file.job.network.host;
  auto at = host + ":" + std::to_string(reign->port());
  reign->log().event("listening", {{"host", host}, {"port", reign->port()}},
                     "supervisor at " + at + "; on each node: shoal node --join " + at);
  std::optional<result<void>> end;
  while (!end) end = reign->wait(clock::now() + 1s);
  here = nullptr;
  if (*end) tell(options.output, "supervisor", file.job, reign->summary());
  return *end;
}

}  // namespace shoal::app
