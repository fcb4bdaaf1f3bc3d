#pragma once
// The inside of supervisor_machine, cut by concern into three sources:
//
//   supervisor_members.cpp   who is in: hello, loss, leave, silence
//   supervisor_views.cpp     from one view to the next: halt, meet, plan, prepare, commit
//   supervisor_running.cpp   while a view trains: decisions, arrivals and leaves, the end

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/membership/failure_detector.hpp"
#include "core/morph/morph_clock.hpp"
#include "core/morph/recovery.hpp"
#include "core/morph/roster.hpp"
#include "core/morph/supervisor_machine.hpp"

namespace shoal::core {

class supervisor_machine::impl {
public:
  explicit impl(supervisor_options options);

  std::vector<supervisor_action> step(time_point now, const supervisor_event& event);
  std::vector<supervisor_action> tick(time_point now);
  supervisor_status status() const;

private:
  /// A view that gets ready.
  struct preparation {
    layout shape;
    recovery_line line;
    std::set<node_id> recipients;  // who got a prepare
    std::set<node_id> awaited;     // who has a stage and is not ready
    std::set<node_id> complete;    // who lacked no block
    std::map<node_id, std::vector<held_block>> ready;
    time_point until;
  };

  // supervisor_members.cpp
  void on(const heard& event);
  void on(const link_lost& event);
  void on(const node_exited& event);
  void on(const checkpoints_found& event);
  void on(const leave_asked& event);
  void on(const stop_asked& event);
  void admit(link_id link, const hello& knock);
  bool acceptable(link_id link, const hello& knock);
  roster_node& name(link_id link, const hello& knock);
  void place_arrival(roster_node& node, bool new_life);
  void lose(roster_node& node, const std::string& reason, bool ended);
  void discharge(roster_node& node, std::optional<errc> failure, const std::string& reason);
  void let_go(roster_node& node, const std::string& reason);
  void watch();

  // supervisor_views.cpp
  void take(roster_node& node, const standing& word);
  void take(roster_node& node, const ready& word);
  void take(roster_node& node, const failed& word);
  void start_when_enough();
  void adopt_when_whole();
  void begin_halting(const std::string& reason, bool planned);
  void go_on_when_answered();
  void plan_next();
  bool plan_layout(plan_result& planned);
  void send_prepares(const plan_result& planned);
  bool replicas_agree();
  void commit_view();
  bool old_view_over(std::string& why) const;
  void hold(const std::string& reason);
  void resume_when_safe();
  void raise_highest(view_id view);
  void accuse(node_id reporter, node_id suspect, const std::string& reason);

  // supervisor_running.cpp
  void take(roster_node& node, const decided& word);
  void take(roster_node& node, const diverged& word);
  void take(roster_node& node, const trouble& word);
  void take(roster_node& node, const leaving& word);
  void take(roster_node& node, const checkpoint_done& word);
  void take(roster_node& node, const heartbeat& word);
  void take(roster_node&, const hello&) {}
  void reconsider();
  void change_noticed();
  void finish_when_saved();
  void try_last_checkpoint_again(const std::string& reason);
  void conclude(std::optional<errc> failure, const std::string& reason);
  void refine_profile(const decided& word);
  void hear_survivors();
  void hear_again(const roster_node& node, const verdict& word);

  // shared
  template <class Action>
  void act(Action action) {
    out_.emplace_back(std::in_place_type<Action>, std::move(action));
  }
  void say(report_kind kind, std::string text, node_id node = {});
  void tell(const roster_node& node, supervisor_message message);
  void put_ledger() { act(persist{ledger_}); }
  bool in_shape(node_id node) const;
  bool is_final(step_id step) const { return step.value == job_.training.steps; }
  bool has_checkpoint(step_id step) const;
  std::vector<plan_node> plan_nodes(bool all) const;
  std::set<std::pair<node_id, bool>> who_is_here() const;
  std::uint64_t memory_of(const roster_node& node) const;

  supervisor_options options_;
  const job_options& job_;
  plan_profile profile_;
  ledger_state ledger_;
  roster roster_;
  failure_detector detector_;
  std::vector<step_id> checkpoints_;  // usable, oldest first
  std::vector<supervisor_action> out_;
  time_point now_{};

  job_state state_ = job_state::gathering;
  view_id view_;  // being halted for, prepared, or running
  time_point reign_began_{};
  std::optional<time_point> enough_since_;  // gathering: nodes_min are here
  bool started_ = false;

  std::set<node_id> answers_awaited_;  // halting
  time_point gather_until_{};
  time_point answer_until_{};
  bool old_view_ended_ = false;   // one of its members has answered a halt: it can decide no more
  std::string hold_reason_;       // while holding
  bool held_for_safety_ = false;  // holding: the old view may still train
  std::optional<time_point> lost_sign_;  // last sign of life of the node whose loss halts us
  std::string plan_reason_;

  std::optional<preparation> next_;  // preparing
  std::uint32_t preparations_ = 0;   // since a step was decided or the nodes changed
  std::map<std::pair<node_id, node_id>, std::uint32_t> strikes_;  // (reporter, suspect)
  std::map<node_id, std::uint32_t> divergences_;                  // of the odd ones

  step_id newest_;   // newest decided step ever heard of
  step_id told_;     // newest step that a survivor told in the lead's place
  step_id reached_;  // newest step of the present weights
  double loss_ = 0;
  bool decided_in_view_ = false;
  std::optional<time_point> reconsider_at_;
  std::set<std::pair<node_id, bool>> considered_;  // who was here, and leaving, at the last plan
  std::uint32_t last_checkpoint_tries_ = 0;
  time_point finish_until_{};
  std::uint32_t morphs_ = 0;
  std::uint8_t end_code_ = 0;  // of stop, once done
  morph_clock clock_;
};

}  // namespace shoal::core
