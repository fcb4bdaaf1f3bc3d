// `shoal profile`: what each block of a job's model costs on this machine, and the link between
// two of its processes. The JSON names all that a profile depends on, so that another job's,
// machine's or build's is not taken for it.

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/commands.hpp"
#include "app/config/job_text.hpp"
#include "telemetry/words.hpp"
#include "torch/profiler.hpp"
#include "torch/registry.hpp"
#include "transport/link_probe.hpp"

namespace shoal::app {

namespace {

using json = nlohmann::ordered_json;

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "unknown";
}

json json_of(const robust_value& seconds) {
  return {{"s", seconds.mean},
          {"half_width_s", seconds.half_width},
          {"used", seconds.used},
          {"rejected", seconds.rejected}};
}

json json_of(const engine::measured_block& b) {
  return {{"name", b.name},
          {"measured_as", b.measured_as},
          {"forward", json_of(b.forward)},
          {"backward", json_of(b.backward)},
          {"optimizer", json_of(b.optimizer)},
          {"parameter_bytes", b.parameter_bytes},
          {"state_bytes", b.state_bytes},
          {"stash_bytes", b.stash_bytes},
          {"boundary_bytes", b.input_bytes},
          {"workspace_bytes", b.workspace_bytes},
          {"doubtful", b.doubtful}};
}

json json_of(const core::job_options& job, const std::vector<engine::measured_block>& blocks,
             const std::vector<transport::link_time>& link) {
  auto block_list = json::array(), table = json::array();
  for (auto& b : blocks) block_list.push_back(json_of(b));
  for (auto& row : link) {
    auto line = json_of(row.seconds);
    line["bytes"] = row.bytes;
    table.push_back(std::move(line));
  }
  return {
    {"profile", 1},
    {"device", "cpu"},
    {"processor", processor()},
    {"dtype", "float32"},
    {"threads", job.training.threads},
    {"model", job.model.kind},
    {"micro_batch_size", job.training.micro_batch_size},
    {"optimizer", job.optimizer.name},
    {"blocks", block_list},
    {"links",
     json::array({{{"between", "processes of this machine, over loopback TCP"},
                   {"emulated", job.emulate.rate.bytes_per_s > 0 || job.emulate.delay.count() > 0},
                   {"one_way", table}}})}};
}

std::string milliseconds(const robust_value& v) {
  char text[48];
  std::snprintf(text, sizeof text, "%9.3f +-%4.1f %%", v.mean * 1e3, v.relative_half_width() * 100);
  return text;
}

void print_table(const std::vector<engine::measured_block>& blocks,
                 const std::vector<transport::link_time>& link) {
  std::printf("%-14s %18s %18s %18s %10s %10s %10s\n", "block", "forward ms", "backward ms",
              "optimizer ms", "weights", "stash", "boundary");
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    auto& block = blocks[b];
    if (block.measured_as != b) {
      std::printf("%-14s as %s\n", block.name.c_str(), blocks[block.measured_as].name.c_str());
      continue;
    }
    std::printf("%-14s %18s %18s %18s %10s %10s %10s%s\n", block.name.c_str(),
                milliseconds(block.forward).c_str(), milliseconds(block.backward).c_str(),
                milliseconds(block.optimizer).c_str(),
                text_of(byte_count{block.parameter_bytes}).c_str(),
                text_of(byte_count{block.stash_bytes}).c_str(),
                text_of(byte_count{block.input_bytes}).c_str(),
                block.doubtful ? "  doubtful: backward / forward is not within 1 and 3.5" : "");
  }
  std::printf("loopback, one way:");
  for (auto& row : link)
    std::printf("  %s %.3f ms", text_of(byte_count{row.bytes}).c_str(), row.seconds.mean * 1e3);
  std::printf("\n");
}

result<void> write(const std::string& path, const std::string& text) {
  auto partial = path + ".tmp";
  std::ofstream file(partial, std::ios::trunc);
  file << text << '\n';
  file.close();
  std::error_code failure;
  if (file) std::filesystem::rename(partial, path, failure);
  if (file && !failure) return {};
  std::filesystem::remove(partial, failure);
  return {errc::io, path + ": the profile cannot be written; check folder, permission and space"};
}

/// "pass 7/40" on a terminal, nothing elsewhere: a profile takes seconds.
engine::profile_callback progress() {
  if (::isatty(STDERR_FILENO) == 0) return {};
  return [](std::uint32_t pass, std::uint32_t of) {
    std::fprintf(stderr, "\rmeasuring: pass %u of at most %u ", pass, of);
  };
}

}  // namespace

result<void> profile(const profile_options& options, const job_file& file, const trainer& mine) {
  const auto& job = file.job;
  TRY(auto model, engine::make_model(mine, job.model));
  TRY(auto data, engine::open_data(mine, job));
  TRY_VOID(engine::check_job(job, model, *data));
  if (options.dry_run) {
    std::printf(
      "would measure %zu blocks of \"%s\" at %u samples and %u threads, and loopback%s%s\n",
      model.size(), job.model.kind.c_str(), job.training.micro_batch_size, job.training.threads,
      options.output.empty() ? "" : ", and write ", options.output.c_str());
    return {};
  }
  auto on_pass = progress();
  auto blocks = engine::profile(job, model, *data, {}, on_pass);
  if (on_pass) std::fprintf(stderr, "\r\033[K");
  if (!blocks) return blocks.error();
  TRY(auto link, transport::probe_loopback(job.emulate));
  auto text = json_of(job, *blocks, link).dump();
  if (!options.output.empty()) TRY_VOID(write(options.output, text));
  if (options.json)
    std::puts(text.c_str());
  else
    print_table(*blocks, link);
  return {};
}

}  // namespace shoal::app
