// `shoal validate`: everything that can be known to be wrong before a node is started.

#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/commands.hpp"
#include "app/config/command_line.hpp"
#include "app/config/job_text.hpp"
#include "base/units.hpp"
#include "telemetry/words.hpp"
#include "torch/block_runtime.hpp"
#include "torch/registry.hpp"

namespace shoal::app {

namespace {

// Tied parameters count once.
std::uint64_t parameter_count(const chain& model) {
  auto tied = engine::find_ties(model);
  std::uint64_t count = 0;
  for (std::size_t b = 0; b < model.size(); ++b) {
    auto parameters = model[b]->parameters();
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      std::uint64_t size = 1;
      for (auto d : parameters[p].shape) size *= static_cast<std::uint64_t>(d);
      if (tied.counts[b][p]) count += size;
    }
  }
  return count;
}

}  // namespace

result<void> validate(const validate_options& options, const job_file& file, const trainer& mine) {
  const auto& job = file.job;
  TRY(const auto opened, engine::open_job(mine, job));
  auto& [model, data] = opened;
  auto parameters = parameter_count(model);
  auto samples = std::uint64_t{job.training.micro_batches} * job.training.micro_batch_size;
  auto digest = text_digest(bits_text(job, data->fingerprint()));
  if (options.json) {
    nlohmann::ordered_json line{{"job", job.name},
                                {"blocks", model.size()},
                                {"parameters", parameters},
                                {"samples", data->size()},
                                {"validation_samples", data->validation_size()},
                                {"samples_a_step", samples},
                                {"steps", job.training.steps},
                                {"bits", telemetry::hex_digest(digest)}};
    std::puts(line.dump().c_str());
    return {};
  }
  std::printf("%s is sound.\n", options.job.path.c_str());
  std::printf("model  %s, %zu blocks, %s parameters (%s)\n", job.model.kind.c_str(), model.size(),
              telemetry::short_number(static_cast<double>(parameters)).c_str(),
              text_of(byte_count{parameters * sizeof(float)}).c_str());
  std::printf("data   %s, %llu samples, %llu for validation\n", job.data.kind.c_str(),
              static_cast<unsigned long long>(data->size()),
              static_cast<unsigned long long>(data->validation_size()));
  std::printf("work   %u steps of %u x %u samples: %.2f epochs\n", job.training.steps,
              job.training.micro_batches, job.training.micro_batch_size,
              static_cast<double>(job.training.steps) * static_cast<double>(samples) /
                static_cast<double>(data->size()));
  std::printf("folder %s\n", job.folder.c_str());
  auto host = check_host(job.network.host, false, "network.host");
  if (!host) std::printf("note   %s\n", host.error().text.c_str());
  return {};
}

}  // namespace shoal::app
