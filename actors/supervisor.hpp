#pragma once

#include <map>

#include "actors/interfaces.hpp"
#include "actors/system.hpp"
#include "core/morph/supervisor_machine.hpp"

namespace shoal::actors {

/// Shell of `core::supervisor_machine`. A link is a NODE's handle; its loss is the end of the
/// connection, as a monitor tells it. May block in `ports.persist`.
class supervisor_state {
public:
  static inline const char* name = "supervisor";

  supervisor_state(supervisor_inside::pointer self, core::supervisor_options options,
                   supervisor_ports ports, std::vector<step_id> checkpoints);
  supervisor_inside::behavior_type make_behavior();

private:
  void hear(core::node_message message);
  core::answer reply(const core::question& asked);
  void on(const core::supervisor_event& event);
  void on_tick();
  void on_down(const caf::down_msg& down);
  void on_hang_up();

  core::link_id link_of(const caf::strong_actor_ptr& node, bool is_hello);
  void apply(const std::vector<core::supervisor_action>& actions);
  bool act(const core::send& action);
  bool act(const core::persist& action);
  bool act(const core::drop_link& action);
  bool act(const core::report& action);
  bool act(const core::step_done& action);
  bool act(const core::finished& action);

  supervisor_inside::pointer self_;
  core::nanoseconds interval_;
  core::supervisor_machine machine_;
  supervisor_ports ports_;
  std::vector<step_id> checkpoints_;
  std::map<caf::actor_addr, core::link_id> links_;  // of all open connections; 0: dropped
  std::map<core::link_id, node_actor> nodes_;
  core::link_id last_link_;
  bool ledger_lost_ = false;
  bool hanging_up_ = false;
};

}  // namespace shoal::actors
