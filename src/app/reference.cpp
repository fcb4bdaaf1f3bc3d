// `shoal reference`: the engine's reference with a screen and a metrics file, as a run has them.

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/commands.hpp"
#include "app/run_log.hpp"
#include "telemetry/words.hpp"
#include "torch/reference.hpp"
#include "torch/registry.hpp"

namespace shoal::app {

namespace {

telemetry::step_record record_of(const step_info& info, core::decision what) {
  telemetry::step_record record;
  record.step = info.step;
  record.what = what;
  record.loss = info.loss;
  record.gradient_norm = info.gradient_norm;
  record.learning_rate = info.learning_rate;
  record.digest_before = info.digest_before;
  record.validation_loss = info.validation_loss;
  record.time_s = telemetry::unix_time_s();
  return record;
}

void tell(const reference_options& options, const core::job_options& job,
          const engine::reference_outcome& out) {
  if (options.output.json) {
    nlohmann::ordered_json line{
      {"command", "reference"},       {"job", job.name},
      {"steps", job.training.steps},  {"digest", telemetry::hex_digest(out.digest)},
      {"loss_first", out.loss_first}, {"loss_last", out.loss_last}};
    if (out.validation_loss) line["validation_loss"] = *out.validation_loss;
    auto& blocks = line["blocks"] = nlohmann::ordered_json::array();
    for (auto digest : out.block_digests) blocks.push_back(telemetry::hex_digest(digest));
    std::puts(line.dump().c_str());
  } else if (!options.output.quiet) {
    std::printf("digest %s of the weights after step %u; loss %.4f -> %.4f\n",
                telemetry::hex_digest(out.digest).c_str(), job.training.steps, out.loss_first,
                out.loss_last);
  }
}

}  // namespace

result<void> reference(const reference_options& options, const job_file& file,
                       const trainer& mine) {
  const auto& job = file.job;
  TRY(const auto opened, engine::open_job(mine, job));
  auto& [model, data] = opened;
  std::error_code failure;
  std::filesystem::create_directories(job.folder, failure);
  if (failure) {
    auto denied =
      failure == std::errc::permission_denied || failure == std::errc::read_only_file_system;
    return {denied ? errc::no_permission : errc::io,
            "job.folder " + job.folder + " cannot be made: " + failure.message()};
  }
  TRY(auto metrics, telemetry::metrics_file::open(job.folder + "/metrics.jsonl",
                                                  telemetry::metrics_file::mode::fresh));
  telemetry::console screen(stdout, telemetry::console_options_for(stdout, options.output.quiet));
  run_log log(job, screen, std::move(metrics), mine.on_step);
  auto on_step = [&](step_info info, const std::vector<std::uint64_t>& digests_before) {
    info.digest_before = core::model_digest(digests_before);
    log.step(record_of(info, info.skipped ? core::decision::skip : core::decision::apply));
  };
  TRY(auto out, engine::run_reference(job, model, *data, on_step));
  step_info closing;
  closing.step = job.training.steps + std::uint64_t{1};
  closing.digest_before = out.digest;
  closing.validation_loss = out.validation_loss;
  log.step(record_of(closing, core::decision::finish));
  screen.close();
  tell(options, job, out);
  return {};
}

}  // namespace shoal::app
