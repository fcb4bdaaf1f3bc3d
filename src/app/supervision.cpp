#include "app/supervision.hpp"

#include <algorithm>

#include "app/config/command_line.hpp"
#include "app/config/job_text.hpp"
#include "app/status_json.hpp"
#include "storage/ledger_codec.hpp"
#include "storage/manifest_codec.hpp"
#include "torch/registry.hpp"

namespace shoal::app {

supervision::supervision(const core::job_options& job, const output_options& output)
  : job_(job),
    screen_(stdout, telemetry::console_options_for(stdout, output.quiet || output.json)) {}

supervision::~supervision() { host_.reset(); }

result<std::unique_ptr<supervision>> supervision::start(const core::job_options& job, bool insecure,
                                                        const output_options& output,
                                                        const trainer& mine) {
  TRY_VOID(check_host(job.network.host, insecure, "network.host"));
  TRY(const auto opened, engine::open_job(mine, job));
  auto& [model, data] = opened;
  std::unique_ptr<supervision> reign(new supervision(job, output));
  TRY_VOID(reign->open_folder(mine, model, data->fingerprint()));
  TRY_VOID(reign->listen(model));
  return reign;
}

result<void> supervision::open_folder(const trainer& mine, const chain& model,
                                      std::uint64_t fingerprint) {
  bits_ = bits_text(job_, fingerprint);
  TRY(ledger_, storage::ledger::open(job_.folder));
  TRY(auto state, ledger_->get_state());
  if (state) {
    TRY(found_, storage::decode_ledger(*state));
    if (found_.job != text_digest(bits_))
      return {errc::foreign, "job.folder " + job_.folder +
                               " belongs to a job that trains other weights; "
                               "give this one a folder of its own"};
  }
  profile_ = engine::first_profile(model, job_);
  folder_.emplace(job_.checkpoint.folder);
  std::uint64_t whole = 0;
  for (auto& block : profile_.blocks) whole += block.parameter_bytes + block.state_bytes;
  TRY_VOID(folder_->preflight(whole));
  TRY(auto stale, folder_->remove_stale());
  TRY(auto listing, folder_->list(bits_));
  for (auto& m : listing.usable) checkpoints_.push_back(m.step);
  TRY(auto metrics, telemetry::metrics_file::open(job_.folder + "/metrics.jsonl",
                                                  state || !checkpoints_.empty()
                                                    ? telemetry::metrics_file::mode::continued
                                                    : telemetry::metrics_file::mode::fresh));
  log_.emplace(job_, screen_, std::move(metrics), mine.on_step);
  if (stale > 0)
    screen_.event(std::to_string(stale) + " unfinished files of an earlier run were removed");
  for (auto& other : listing.others) {
    // Weights of another job in this folder are a mistake to stop at, not to train over.
    if (other.why.code == errc::foreign) return other.why;
    screen_.event("checkpoint " + std::to_string(other.step.value) +
                  " is not used: " + other.why.text);
  }
  return {};
}

result<void> supervision::listen(const chain&) {
  core::supervisor_options options;
  options.job = job_;
  options.job_text = canonical_text(job_);
  options.job_digest = text_digest(bits_);
  options.profile = profile_;
  options.ledger = found_;
  TRY(host_, actors::supervisor_host::start(job_.network.host, job_.network.control_port,
                                            std::move(options), checkpoints_, ports()));
  TRY(auto here, address_file::write(job_.folder, {job_.network.host, host_->port()}));
  address_.emplace(std::move(here));
  return {};
}

actors::supervisor_ports supervision::ports() {
  return {
    .persist =
      [this](const core::ledger_state& state) {
        return ledger_->put_state(storage::encode_ledger(state));
      },
    .reported =
      [this](const core::report& what, const core::supervisor_status& status) {
        push(reported{what, status.shape});
      },
    .stepped = [this](const core::step_done& what) { push(what); },
    .finished = [this](const core::finished& what) { push(what); },
    .describe =
      [this](const core::supervisor_status& status) {
        return status_json(status, job_, profile_).dump();
      },
  };
}

void supervision::tell(core::supervisor_event event) { host_->tell(std::move(event)); }

void supervision::push(news what) {
  std::lock_guard lock(mutex_);
  queue_.push_back(std::move(what));
  changed_.notify_all();
}

std::optional<result<void>> supervision::wait(std::chrono::steady_clock::time_point until) {
  std::deque<news> heard;
  {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, until, [&] { return !queue_.empty(); });
    heard.swap(queue_);
  }
  for (auto& what : heard) {
    if (auto* report = std::get_if<reported>(&what))
      take(*report);
    else if (auto* step = std::get_if<core::step_done>(&what)) {
      take(*step);
      if (auto& same = log_->same_bits(); !same) return screen_.close(), same;
    } else {
      auto& end = std::get<core::finished>(what);
      screen_.close();
      if (end.failure) return result<void>(*end.failure, end.reason);
      return result<void>();
    }
  }
  return std::nullopt;
}

void supervision::take(const reported& what) {
  log_->shape(what.shape);
  if (what.what.kind == core::report_kind::morph && what.what.timing) ++summary_.morphs;
  if (what.what.kind == core::report_kind::checkpoint) retire_checkpoints();
  log_->report(what.what);
}

void supervision::take(const core::step_done& what) {
  auto record = telemetry::record_of(what.what, telemetry::unix_time_s());
  if (record.what == core::decision::finish) {
    summary_.digest = record.digest_before;
    summary_.validation_loss = record.validation_loss;
  } else {
    if (!summary_.loss_first) summary_.loss_first = record.loss;
    summary_.loss_last = record.loss;
  }
  log_->step(record);
}

/// Keeps the newest k, and the catalogue in step with the folder.
void supervision::retire_checkpoints() {
  auto listing = folder_->list(bits_);
  if (!listing) return screen_.error(listing.error().text);
  std::vector<step_id> steps;
  std::vector<std::pair<step_id, std::string>> kept;
  for (auto& m : listing->usable) steps.push_back(m.step);
  if (!steps.empty())
    if (auto removed = folder_->remove_unfinished_before(steps.front()); !removed)
      screen_.error(removed.error().text);
  auto gone = core::to_delete(steps, job_.checkpoint.keep_latest_k, {});
  for (auto step : gone)
    if (auto removed = folder_->remove(step); !removed) screen_.error(removed.error().text);
  for (auto& m : listing->usable)
    if (std::ranges::find(gone, m.step) == gone.end())
      kept.emplace_back(m.step, storage::encode_manifest(m));
  std::ranges::reverse(kept);
  if (auto rebuilt = ledger_->rebuild(kept); !rebuilt) screen_.error(rebuilt.error().text);
}

}  // namespace shoal::app
