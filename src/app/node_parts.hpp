#pragma once
// Everything of a node that is not an actor: model, data, tensor plane, trainer's thread, writer.
// Made once the job is known.

#include <memory>
#include <string>

#include "actors/system.hpp"
#include "shoal/trainer.hpp"
#include "storage/snapshot_writer.hpp"
#include "transport/tcp_plane.hpp"

namespace shoal::app {

/// Owns the parts; destruction ends their threads, in order.
class node_parts {
public:
  /// `job_digest` is the supervisor's: its peers must have the same. `log` takes sentences from any
  /// thread. Errors are those of a job, a data set or a folder that this machine cannot use.
  static result<std::unique_ptr<node_parts>> make(const std::string& job_text,
                                                  std::uint64_t job_digest, const trainer& mine,
                                                  transport::listening_port at,
                                                  std::function<void(core::runner_event)> sink,
                                                  std::function<void(const std::string&)> log);
  ~node_parts();

  /// As the NODE actor wants it; refers to this.
  actors::node_engine engine();

private:
  node_parts() = default;
  core::manifest manifest_of(step_id step, std::vector<core::checkpoint_part> parts) const;

  core::job_options job_;
  std::string bits_;
  chain model_;
  std::unique_ptr<dataset> data_;
  std::unique_ptr<core::tensor_plane> plane_;
  std::unique_ptr<core::block_store> store_;
  std::unique_ptr<core::stage_runner> runner_;
  std::unique_ptr<storage::checkpoint_folder> folder_;
  std::unique_ptr<storage::snapshot_writer> writer_;
};

}  // namespace shoal::app
