#pragma once
// One function a subcommand. Each runs to its end in the calling thread and prints what it has to
// say; an error is left to the caller to print, and becomes the exit code.

#include "app/config/job_file.hpp"
#include "app/config/options.hpp"
#include "base/result.hpp"
#include "shoal/trainer.hpp"

namespace shoal::app {

/// Supervisor here, `nodes.local` nodes as child processes. Ends when the job does, or with
/// `errc::interrupted` after SIGINT or SIGTERM, leaving no process behind.
result<void> run(const run_options& options, const job_file& job, const trainer& mine);

/// The supervisor alone; nodes come by themselves.
result<void> supervise(const supervisor_options& options, const job_file& job, const trainer& mine);

/// Joins, works until it is stopped, leaves on SIGTERM.
result<void> node(const node_options& options, const trainer& mine);

/// Trains in this thread, without actors or transport, and writes metrics.jsonl into the job's
/// folder.
result<void> reference(const reference_options& options, const job_file& job, const trainer& mine);

/// Asks a running supervisor. `errc::unreachable`, `errc::timeout`.
result<void> status(const status_options& options);
result<void> leave(const leave_options& options);

/// Checks a checkpoint in full and prints its step, the digest of each block and of the model.
/// `errc::damaged`, `foreign`, `io`, `checkpoint_unusable`.
result<void> digest(const digest_options& options);

/// Makes the model and opens the data as a run would, and says what came out.
result<void> validate(const validate_options& options, const job_file& job, const trainer& mine);

/// Runs the cluster simulator. `errc::internal` names the first seed that breaks a promise.
result<void> sim(const sim_options& options);

/// Measures the blocks of a model, and the loopback link, and prints or writes the profile.
result<void> profile(const profile_options& options, const job_file& job, const trainer& mine);

/// Plans for nodes that are not there, as the supervisor would for those that are, and shows the
/// best grids beside it. `errc::config`, `foreign` (another job's profile), `no_memory`.
result<void> plan(const plan_options& options, const job_file& job, const trainer& mine);

/// Runs a scenario in the pipeline simulator. `errc::config` names the place in the file.
result<void> simulate(const simulate_options& options);

/// Makes a schedule, or reads one, checks it by all rules and prints it. `errc::config`.
result<void> schedule(const schedule_options& options);

/// What this program was built from.
void version(const version_options& options);

}  // namespace shoal::app
