#pragma once

#include <functional>
#include <map>

#include "actors/interfaces.hpp"
#include "actors/system.hpp"
#include "core/morph/supervisor_machine.hpp"

namespace shoal::actors {

/// Shell of `core::supervisor_machine`. A link is a NODE's handle; its loss is the end of the
/// connection, as a monitor tells it.
class supervisor_state {
public:
  static inline const char* name = "supervisor";

  supervisor_state(supervisor_actor::pointer self, core::supervisor_options options,
                   supervisor_ports ports, std::vector<step_id> checkpoints);
  supervisor_actor::behavior_type make_behavior();

private:
  void hear(core::node_message message);
  core::answer reply(const core::question& asked);
  void on_event(const core::supervisor_event& event);
  void on_tick();
  void on_down(const caf::down_msg& down);
  void apply(const std::vector<core::supervisor_action>& actions);
  bool carry_out(const core::supervisor_action& action);
  core::link_id link_of(const caf::strong_actor_ptr& node);

  supervisor_actor::pointer self_;
  core::nanoseconds interval_;
  core::supervisor_machine machine_;
  supervisor_ports ports_;
  std::vector<step_id> checkpoints_;
  std::map<caf::actor_addr, core::link_id> links_;
  std::map<core::link_id, node_actor> nodes_;
  core::link_id last_link_;
};

}  // namespace shoal::actors
