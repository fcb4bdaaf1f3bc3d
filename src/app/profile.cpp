// `shoal profile`: what each block of a job's model costs on this machine, and what messages take
// between two of its processes and between it and other machines.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "app/commands.hpp"
#include "app/config/job_text.hpp"
#include "app/profile_json.hpp"
#include "app/profile_links.hpp"
#include "base/units.hpp"
#include "storage/durable_file.hpp"
#include "torch/profiler.hpp"
#include "torch/registry.hpp"
#include "transport/link_probe.hpp"

namespace shoal::app {

namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "unknown processor";
}

core::model_profile profile_of(const core::job_options& job, const std::string& job_file,
                               const std::vector<engine::measured_block>& blocks,
                               const std::vector<transport::link_time>& links,
                               std::vector<core::link_pair> pairs) {
  auto subject = subject_of(job, job_file);
  core::model_profile p{.model = subject.model,
                        .model_digest = subject.model_digest,
                        .device = "cpu: " + processor(),
                        .dtype = subject.dtype,
                        .threads = subject.threads,
                        .micro_batch_size = subject.micro_batch_size};
  for (auto& b : blocks)
    p.blocks.push_back({.name = b.name,
                        .forward = time_of(b.forward),
                        .backward = time_of(b.backward),
                        .recompute = time_of(b.forward),
                        .optimizer = time_of(b.optimizer),
                        .boundary_bytes = b.input_bytes,
                        .stash_bytes = b.stash_bytes,
                        .parameter_bytes = b.parameter_bytes,
                        .state_bytes = b.state_bytes,
                        .workspace_bytes = b.workspace_bytes});
  for (auto& l : links) p.links.push_back({l.bytes, time_of(l.seconds)});
  p.pairs = std::move(pairs);
  return p;
}

std::string milliseconds(const core::measured_time& t) {
  char text[48];
  std::snprintf(text, sizeof text, "%9.3f +-%4.1f %%",
                std::chrono::duration<double, std::milli>(t.value).count(), t.confidence * 100);
  return text;
}

void print_table(const core::model_profile& p,
                 const std::vector<engine::measured_block>& measured) {
  std::printf("%-14s %18s %18s %18s %10s %10s %10s\n", "block", "forward ms", "backward ms",
              "optimizer ms", "weights", "stash", "boundary");
  for (std::size_t i = 0; i < p.blocks.size(); ++i) {
    auto& b = p.blocks[i];
    if (measured[i].measured_as != i) {
      std::printf("%-14s as %s\n", b.name.c_str(), p.blocks[measured[i].measured_as].name.c_str());
      continue;
    }
    std::printf("%-14s %18s %18s %18s %10s %10s %10s\n", b.name.c_str(),
                milliseconds(b.forward).c_str(), milliseconds(b.backward).c_str(),
                milliseconds(b.optimizer).c_str(), text_of(byte_count{b.parameter_bytes}).c_str(),
                text_of(byte_count{b.stash_bytes}).c_str(),
                text_of(byte_count{b.boundary_bytes}).c_str());
  }
  std::printf("loopback, one way:  %s\n", text_of(p.links).c_str());
  std::fputs(text_of(p.pairs).c_str(), stdout);
  for (auto& sentence : core::suspicions(p)) std::printf("note: %s\n", sentence.c_str());
}

/// "pass 7 of at most 40" on a terminal, nothing elsewhere: a profile takes seconds.
engine::profile_callback progress() {
  if (::isatty(STDERR_FILENO) == 0) return {};
  return [](std::uint32_t pass, std::uint32_t of) {
    std::fprintf(stderr, "\rmeasuring: pass %u of at most %u ", pass, of);
  };
}

}  // namespace

result<void> profile(const profile_options& options, const job_file& file, const trainer& mine) {
  const auto& job = file.job;
  TRY(const auto opened, engine::open_job(mine, job));
  auto& [model, data] = opened;
  if (options.dry_run) {
    std::printf(
      "would measure %zu blocks of \"%s\" at %u samples and %u threads, loopback, and the links to "
      "%zu peers%s%s\n",
      model.size(), job.model.kind.c_str(), job.training.micro_batch_size, job.training.threads,
      options.peers.size(), options.output.empty() ? "" : ", and write ", options.output.c_str());
    return {};
  }
  auto digest = text_digest(bits_text(job, data->fingerprint()));
  if (options.answer) return answer_probes(options, job, digest);
  TRY(auto pairs, probe_peers(options.peers, job, digest));  // first: what fails, fails at once
  auto on_pass = progress();
  auto blocks = engine::profile(job, model, *data, {}, on_pass);
  if (on_pass) std::fprintf(stderr, "\r\033[K");
  if (!blocks) return blocks.error();
  TRY(auto links, transport::probe_loopback(job.emulate));
  auto made = profile_of(job, options.job.path, *blocks, links, std::move(pairs));
  auto text = profile_json(made);
  if (!options.output.empty())
    TRY_VOID(storage::write_durably(storage::real_file_system(), options.output, text + "\n"));
  if (options.json)
    std::puts(text.c_str());
  else
    print_table(made, *blocks);
  return {};
}

}  // namespace shoal::app
