#pragma once
// The coordinator of one replica in one view: joins its stages' reports, and, when the replica is
// the first one, leads: decides each round for all.
//
//   stages --stage_report--> coordinator --replica_report--> lead
//   stages <----verdict----- coordinator <-----verdict------ lead --decided--> supervisor
//
// A verdict is a pure function of the job, the round and the reports: whoever decides a round
// again, in another view, decides alike. Only `view` and `last_of_view` may differ.
//
// Made by start_coordinator, gone with stop_coordinator: it never outlives its view, and drops
// whatever is not of its view and its present round.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/job.hpp"
#include "core/messages.hpp"
#include "core/time.hpp"

namespace shoal::core {

using coordinator_event = std::variant<stage_report, replica_report, verdict, drain>;

/// To the coordinator on the NODE `to`, never this one (member_action to_peer).
struct tell_coordinator {
  node_id to;
  std::variant<replica_report, verdict> what;
};
/// To a stage of this replica, which may be that of this node (member_event from_peer{self, ...}).
struct tell_stage {
  node_id to;
  verdict what;
};
/// Through this NODE (member_event from_coordinator).
struct tell_supervisor {
  std::variant<decided, diverged, trouble> what;
};
using coordinator_action = std::variant<tell_coordinator, tell_stage, tell_supervisor>;

struct coordinator_options {
  job_options job;
  view_id view;
  sender self;
  layout shape;
  replica_index replica = 0;
  step_id step;  ///< weights that the view starts from; its first round is the next one
};

class coordinator_machine {
public:
  explicit coordinator_machine(coordinator_options options);
  std::vector<coordinator_action> step(time_point now, const coordinator_event& event);

private:
  using actions = std::vector<coordinator_action>;
  void on(const stage_report& report, actions& out);
  void on(const replica_report& report, actions& out);
  void on(const verdict& word, actions& out);
  void on(const drain& order, actions& out);
  void join(actions& out);
  void lead(actions& out);
  bool agree(actions& out);
  decided sum_up() const;
  void give_up(node_id peer, const std::string& what, actions& out);
  void pass_on(const verdict& word, actions& out);
  bool leads() const { return options_.replica == 0; }

  coordinator_options options_;
  step_id round_;
  bool draining_ = false;
  bool ended_ = false;  // the last verdict of the view, or a divergence, is out
  std::vector<std::optional<stage_report>> stages_;
  std::vector<std::optional<replica_report>> replicas_;
};

}  // namespace shoal::core
