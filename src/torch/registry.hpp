#pragma once
// From the names in a job file to a model and its data: those that are built in ("gpt2", "llama",
// "emulated"; "text", "nanogpt", "llmc"), and those that a trainer brings along, which win.

#include <memory>
#include <vector>

#include "base/result.hpp"
#include "core/job.hpp"
#include "core/plan/plan.hpp"
#include "shoal/data.hpp"
#include "shoal/model.hpp"
#include "shoal/trainer.hpp"

namespace shoal::engine {

/// The chain that [model] describes, checked: not empty, at most block_count_max blocks, names
/// unique in a block, tied parameters alike, the last block gives a loss. `errc::config` naming the
/// key, or, for an unknown kind, the nearest one.
result<chain> make_model(const trainer& mine, const core::model_options& options);

/// The data that [data] describes. `errc::config` for an unknown kind, `errc::data` and others as
/// the kind says.
result<std::unique_ptr<dataset>> open_data(const trainer& mine, const core::job_options& job);

/// Checks that job, model and data fit together: sizes within their limits, samples for at least
/// one step, a validation split where validation is asked for, the optimizer's name and numbers.
/// `errc::config` or `errc::data`.
result<void> check_job(const core::job_options& job, const chain& model, const dataset& data);

/// What a job trains, and on what.
struct opened_job {
  chain model;
  std::unique_ptr<dataset> data;
};

/// All three in one go: the model made, the data opened, both found to fit the job.
result<opened_job> open_job(const trainer& mine, const core::job_options& job);

/// What the blocks cost, for the first plan, before anything was measured: bytes by their shapes,
/// times by block::work at 20 GFLOP/s, the stash by a rule of thumb for layers of matrix products.
std::vector<core::block_cost> first_costs(const chain& model, const core::job_options& job);

/// The same with the link that the job emulates, if it does.
core::plan_profile first_profile(const chain& model, const core::job_options& job);

}  // namespace shoal::engine
