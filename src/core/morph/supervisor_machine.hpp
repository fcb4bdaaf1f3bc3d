#pragma once
// The supervisor: decides which nodes train which layout, and takes the job from one to the next.
//
//   gathering --> halting --> preparing --> running --> finishing --> done
//                   ^  ^ |        |            |
//         some join |  | |        | failed,    | lost             arrival, leave
//                holding | <------+ lost <-----+--- draining <-------- running
//               too few  +
//
// *halting* is the one way from a view to the next: everyone stops and says where he stands, the
// pure functions in recovery.hpp decide where to meet, the planner who does what.
//
// It is needed to change the shape, not to take a step: nobody waits for it between commits.
// A supervisor that starts again with a ledger is `adopting`: when all members of the ledger's view
// still train, it goes on as `running` without a pause.
//
// Pure and single-threaded: one owner calls `step` and `tick` and carries out the actions in order;
// a `persist` must be durable before what follows it.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/job.hpp"
#include "core/messages.hpp"
#include "core/morph/recovery.hpp"
#include "core/morph/supervisor_io.hpp"
#include "core/plan/plan.hpp"
#include "core/time.hpp"

namespace shoal::core {

/// As core::plan, which is the default; another one may be given.
using planner = std::function<result<plan_result>(
  const plan_profile&, const std::vector<plan_node>&, const layout& present, const job_options&)>;

/// As core::find_recovery_line, which is the default.
using recovery = std::function<recovery_line(const recovery_input&)>;

struct supervisor_options {
  job_options job;
  std::string job_text;  ///< canonical; sent to each node
  std::uint64_t job_digest = 0;
  plan_profile profile;  ///< a block each; times and the link's rate get refined
  ledger_state ledger;   ///< as found; default-made: a new job
  planner plan;          ///< empty: core::plan
  recovery recover;      ///< empty: core::find_recovery_line
};

class supervisor_machine {
public:
  explicit supervisor_machine(supervisor_options options);
  ~supervisor_machine();
  supervisor_machine(supervisor_machine&&) noexcept;

  /// The first call must be step(checkpoints_found).
  std::vector<supervisor_action> step(time_point now, const supervisor_event& event);

  /// Deadlines and silence; to be called every heartbeat_interval(timeouts) or more often.
  std::vector<supervisor_action> tick(time_point now);

  supervisor_status status() const;

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace shoal::core
