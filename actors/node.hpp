#pragma once

#include <functional>
#include <map>
#include <memory>

#include "actors/interfaces.hpp"
#include "actors/system.hpp"

namespace shoal::actors {

/// Shell of `core::member_machine`: knocks at the supervisor, dials other nodes, and has STAGE,
/// COORDINATOR and CHECKPOINT WRITER as its children.
class node_state {
public:
  static inline const char* name = "node";

  node_state(node_actor::pointer self, std::shared_ptr<const node_host_options> options,
             core::member_options me, std::function<void(node_end)> ended);
  node_actor::behavior_type make_behavior();

private:
  /// The way to another node: its handle once dialed, and what waits for it.
  struct road {
    core::member to;
    node_actor handle;
    bool dialing = false;
    std::vector<core::peer_message> waiting;
  };

  void on(const core::member_event& event);
  void command(core::supervisor_message what) { on(core::from_supervisor{std::move(what)}); }
  void on_tick();
  void on_down(const caf::down_msg& down);
  void knock();
  void met(const supervisor_actor& supervisor);
  void missed(const std::string& why);

  void apply(const std::vector<core::member_action>& actions);
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
  void obey(const std::vector<core::coordinator_action>& actions);
  void pass_on(node_id to, core::peer_message what);

  void dial_peer(road& way);
  void deliver(road& way, const core::peer_message& what);
  void make_engine(const core::welcome& welcome);
  void stop_children();
  void say(const std::string& sentence) const;

  node_actor::pointer self_;
  std::shared_ptr<const node_host_options> options_;
  core::member_options me_;
  std::function<void(node_end)> ended_;
  core::nanoseconds interval_;
  std::optional<core::member_machine> machine_;  // from the first knock on
  std::chrono::steady_clock::time_point knocking_since_;
  std::chrono::milliseconds backoff_{20};
  supervisor_actor supervisor_;
  std::optional<node_engine> engine_;
  stage_actor stage_;
  coordinator_actor coordinator_;
  checkpoint_writer_actor writer_;
  std::vector<core::member> members_;  // of the view being coordinated or prepared
  std::map<core::sender, road> roads_;
  bool welcome_ = false;
  bool exited_ = false;
};

}  // namespace shoal::actors
