#pragma once
// The way in for the author of a trainer: name your model and data, call `main`.
//
//   int main(int argc, char** argv) {
//     shoal::trainer mine;
//     mine.models["my-net"] = [](const shoal::core::model_options& o) { return make_my_net(o); };
//     return shoal::main(argc, argv, mine);
//   }
//
// The program that comes out is a whole `shoal`: it has every subcommand, it is the supervisor and
// each of its nodes, and job files may say `model.kind = "my-net"`.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "core/job.hpp"
#include "shoal/data.hpp"
#include "shoal/model.hpp"

namespace shoal {

/// What is known after a step.
struct step_info {
  std::uint64_t step = 0;
  double loss = 0;           ///< mean over the global batch
  double gradient_norm = 0;  ///< before clipping
  double learning_rate = 0;
  bool skipped = false;                   ///< the step was not applied: a value was not finite
  std::uint64_t digest_before = 0;        ///< of the weights that the step started from
  std::optional<double> validation_loss;  ///< of those weights, when due
};

/// Makes a chain from the job's [model] table; `errc::config` when the table makes no sense.
using model_factory = std::function<result<chain>(const core::model_options&)>;
/// Opens a data set from the job's tables; `errc::data` when it is missing or damaged.
using data_factory = std::function<result<std::unique_ptr<dataset>>(const core::job_options&)>;

/// Models and data by the names that job files use, and hooks. "gpt2", "llama", "emulated", "text",
/// "nanogpt" and "llmc" are there already; the same name replaces them.
struct trainer {
  std::map<std::string, model_factory> models;
  std::map<std::string, data_factory> datasets;
  /// Called in the supervisor's process (and in `reference`) after each decided step, in order.
  /// Must return soon: progress output waits for it, training does not.
  std::function<void(const step_info&)> on_step;
};

/// Runs the whole program. Returns its exit code.
int main(int argc, char** argv, const trainer& mine);

}  // namespace shoal
