#pragma once
// A supervisor's reign, from its folder to its last word: what `shoal run` and `shoal supervisor`
// share. The actors decide; this keeps the ledger, the log and the folder.

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>

#include "actors/system.hpp"
#include "app/address_file.hpp"
#include "app/config/job_file.hpp"
#include "app/config/options.hpp"
#include "app/run_log.hpp"
#include "shoal/trainer.hpp"
#include "storage/checkpoint_folder.hpp"
#include "storage/ledger.hpp"

namespace shoal::app {

/// What a run came to.
struct run_summary {
  std::uint64_t digest = 0;  ///< of the weights after the last step
  std::optional<double> loss_first, loss_last, validation_loss;
  std::uint32_t morphs = 0;  ///< the first view is none
};

/// Used from the thread that made it, but for `tell`.
class supervision {
public:
  /// Checks the job against its data and folder, opens the ledger, and starts to listen. Any error
  /// that a user can make comes from here.
  static result<std::unique_ptr<supervision>> start(const core::job_options& job, bool insecure,
                                                    const output_options& output,
                                                    const trainer& mine);
  ~supervision();

  std::uint16_t port() const { return host_->port(); }
  run_log& log() { return *log_; }

  /// An event for the supervisor. Any thread.
  void tell(core::supervisor_event event);

  /// Takes what has happened since into the log, waiting until `until` for something to happen.
  /// Returns how the job ended, once it has.
  std::optional<result<void>> wait(std::chrono::steady_clock::time_point until);

  const run_summary& summary() const { return summary_; }
  /// Newest step decided.
  std::uint64_t step() const { return log_->newest_step(); }

private:
  struct reported {
    core::report what;
    core::layout shape;
  };
  using news = std::variant<reported, core::step_done, core::finished>;

  supervision(const core::job_options& job, const output_options& output);
  result<void> open_folder(const trainer& mine, const chain& model, std::uint64_t fingerprint);
  result<void> listen(const chain& model);
  actors::supervisor_ports ports();
  void push(news what);
  void take(const reported& what);
  void take(const core::step_done& what);
  void retire_checkpoints();

  core::job_options job_;
  telemetry::console screen_;
  std::string bits_;  // the keys that decide the bits, and the data
  core::plan_profile profile_;
  core::ledger_state found_;
  std::vector<step_id> checkpoints_;
  std::optional<storage::checkpoint_folder> folder_;
  std::unique_ptr<storage::ledger> ledger_;
  std::optional<run_log> log_;
  run_summary summary_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<news> queue_;

  std::unique_ptr<actors::supervisor_host> host_;  // uses all of the above
  std::optional<address_file> address_;
};

}  // namespace shoal::app
