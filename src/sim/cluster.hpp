#pragma once
// The cluster simulator: the real machines of supervisor, nodes and coordinators in one thread,
// under virtual time, with all the bad luck that a seed can draw.
//
//   seed -> job, planner, delays, faults -> run -> checks during (checker.hpp), the end after
//
// When the faults are over, the job must end: all steps done, the last checkpoint there, with the
// weights of the undisturbed job. A seed replays exactly: the same hash of everything that
// happened.

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "core/job.hpp"
#include "core/morph/member_machine.hpp"
#include "core/morph/supervisor_machine.hpp"
#include "core/step/coordinator_machine.hpp"

namespace shoal::sim {

/// Seams for tests that break the core on purpose. Empty ones change nothing.
struct hooks {
  core::recovery recover;
  /// What a member gets instead of an event.
  std::function<std::vector<core::member_event>(const core::member_machine&,
                                                const core::member_event&)>
    member_events;
  /// What a coordinator gets instead of an event.
  std::function<std::vector<core::coordinator_event>(const core::coordinator_options&,
                                                     const core::coordinator_event&)>
    coordinator_events;
};

struct cluster_options {
  std::uint64_t seed = 1;
  bool faults = true;
  bool real_planner = false;  ///< core::plan instead of a random one; without one, the seed chooses
  hooks broken;
};

struct cluster_outcome {
  bool ok = false;
  std::string violation;       ///< when not ok: what, and when
  std::uint64_t log_hash = 0;  ///< of everything that happened
  std::uint64_t events = 0;
  core::nanoseconds virtual_time{};
  std::uint64_t steps = 0;   ///< step_done of the supervisor
  std::uint64_t morphs = 0;  ///< views committed
  std::uint64_t crashes = 0, freezes = 0, cuts = 0, glitches = 0, joins = 0, leaves = 0;
  std::uint64_t supervisor_crashes = 0;
  std::uint64_t rollbacks = 0;  ///< views that started from a checkpoint or from initial values
  std::uint64_t roll_forwards = 0;
  std::uint64_t adoptions = 0;  ///< views that a new supervisor took over while they trained
};

/// Runs one seed to its end. Writes what happens to `log`, a line each, unless it is null.
cluster_outcome run_cluster(const cluster_options& options, std::ostream* log = nullptr);

}  // namespace shoal::sim
