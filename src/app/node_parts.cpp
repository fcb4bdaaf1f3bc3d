#include "app/node_parts.hpp"

#include "app/config/job_file.hpp"
#include "app/config/job_text.hpp"
#include "torch/registry.hpp"
#include "torch/runner/runner.hpp"

namespace shoal::app {

result<std::unique_ptr<node_parts>> node_parts::make(const std::string& job_text,
                                                     std::uint64_t job_digest, const trainer& mine,
                                                     transport::listening_port at,
                                                     std::function<void(core::runner_event)> sink,
                                                     std::function<void(const std::string&)> log) {
  std::unique_ptr<node_parts> parts(new node_parts);
  TRY(parts->job_, parse_canonical(job_text));
  auto& job = parts->job_;
  TRY(auto opened, engine::open_job(mine, job));
  parts->model_ = std::move(opened.model);
  parts->data_ = std::move(opened.data);
  parts->bits_ = bits_text(job, parts->data_->fingerprint());
  if (text_digest(parts->bits_) != job_digest)
    return {errc::data, "the data at " + job.data.path +
                          " is not what the supervisor has; copy its files here"};
  transport::tcp_options options;
  options.job = job_digest;
  options.frame_bytes_max = job.network.frame_bytes_max.value;
  options.emulate = job.emulate;
  options.log = [log](transport::log_level level, const std::string& sentence) {
    if (level == transport::log_level::warning && log) log(sentence);
  };
  parts->plane_ = transport::make_tcp_plane(std::move(options), std::move(at));
  parts->folder_ = std::make_unique<storage::checkpoint_folder>(job.checkpoint.folder);
  parts->store_ = std::make_unique<storage::folder_store>(*parts->folder_, parts->bits_);
  parts->writer_ = std::make_unique<storage::snapshot_writer>(*parts->folder_);
  parts->runner_ = engine::make_stage_runner({.job = job,
                                              .model = parts->model_,
                                              .data = *parts->data_,
                                              .plane = *parts->plane_,
                                              .store = *parts->store_,
                                              .sink = std::move(sink)});
  return parts;
}

node_parts::~node_parts() {
  // The runner uses the plane and the store until its thread has ended, and takes its sink off the
  // plane: it goes before them.
  writer_.reset();
  runner_.reset();
  plane_.reset();
}

actors::node_engine node_parts::engine() {
  return {.job = job_,
          .runner = runner_.get(),
          .block_count = static_cast<std::uint32_t>(model_.size()),
          .write =
            [this](core::runner_snapshot snapshot, std::function<void(core::parts_written)> done) {
              writer_->submit(std::move(snapshot), std::move(done));
            },
          .complete =
            [this](step_id step, std::vector<core::checkpoint_part> parts,
                   std::function<void(result<void>)> done) {
              writer_->complete(manifest_of(step, std::move(parts)), std::move(done));
            }};
}

core::manifest node_parts::manifest_of(step_id step,
                                       std::vector<core::checkpoint_part> parts) const {
  core::manifest m;
  m.job_text = bits_;
  m.step = step;
  std::vector<std::uint64_t> digests;
  for (auto& part : parts) digests.push_back(part.digest);
  m.weights_digest = core::model_digest(digests);
  m.parts = std::move(parts);
  return m;
}

}  // namespace shoal::app
