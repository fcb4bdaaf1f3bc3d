#pragma once

#include <functional>
#include <memory>

#include "actors/interfaces.hpp"
#include "actors/roads.hpp"
#include "actors/system.hpp"

namespace shoal::actors {

/// What a NODE needs from the process around it.
struct node_options {
  core::member_options me;
  std::string supervisor_host;
  std::uint16_t supervisor_port = 0;
  core::nanoseconds join_timeout{};  ///< until the first welcome
  dialer through;
  /// The control port, known before the first `knock`.
  std::function<std::uint16_t()> control_port;
  /// Begins to make the engine and returns; `made` is called once, from any thread.
  std::function<void(const core::welcome&, std::function<void(core::runner_event)> sink,
                     std::function<void(result<node_engine>)> made)>
    make_engine;
  std::function<void(node_end)> ended;
  std::function<void(const std::string&)> log;  ///< may be empty
};

/// Shell of `core::member_machine`: knocks at the supervisor, reaches other nodes, and has STAGE,
/// COORDINATOR and CHECKPOINT WRITER as its children.
class node_state {
public:
  static inline const char* name = "node";

  node_state(node_inside::pointer self, node_options options);
  node_inside::behavior_type make_behavior();

private:
  void on(const core::member_event& event);
  void command(core::supervisor_message what);
  void peer(core::sender from, core::peer_message what);
  void on_tick();
  void beat();
  void on_down(const caf::down_msg& down);
  void on_dropped();
  void obey(const std::vector<core::coordinator_action>& actions);
  void begin();
  void knock_now();
  void met(const supervisor_actor& supervisor);
  void missed(const error& why);
  void lose_supervisor(const std::string& reason);
  void use(const result<node_engine>& made);

  void apply(const std::vector<core::member_action>& actions);
  bool needs_engine(const core::member_action& action) const;
  void act(const core::to_supervisor& action);
  void act(const core::to_peer& action);
  void act(const core::joined& action);
  void act(const core::runner_get_ready& action);
  void act(const core::runner_begin& action);
  void act(const core::runner_decide& action);
  void act(const core::runner_halt& action);
  void act(const core::start_coordinator& action);
  void act(const core::stop_coordinator& action);
  void act(const core::to_coordinator& action);
  void act(const core::write_checkpoint& action);
  void act(const core::collect_parts& action);
  void act(const core::exit_node& action);
  void pass_on(node_id to, core::peer_message what);
  void say(const std::string& sentence) const;

  node_inside::pointer self_;
  node_options options_;
  core::nanoseconds interval_;
  std::optional<core::member_machine> machine_;  // from the first knock on
  core::time_point knocking_since_;
  std::uint32_t tries_ = 0;
  std::string missed_why_;
  supervisor_actor supervisor_;
  own_door<node_inside> door_;  // for the thread that makes the engine
  std::optional<node_engine> engine_;
  std::vector<core::member_action> held_;            // what needs the engine, until it is made
  stage_actor stage_;                                // from the first welcome on
  std::optional<own_door<stage_actor>> stage_door_;  // for the thread that trains
  coordinator_actor coordinator_;
  checkpoint_writer_actor writer_;
  std::vector<core::member> members_;  // of the view that is prepared or in force
  roads roads_;
  bool welcome_ = false;
  bool exited_ = false;
};

}  // namespace shoal::actors
