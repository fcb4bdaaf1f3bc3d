#pragma once

#include "actors/interfaces.hpp"

namespace shoal::actors {

/// Shell of `core::coordinator_machine`. Lives as long as its view on this node; what it wants sent
/// goes through the NODE, which knows the way to other nodes.
class coordinator_state {
public:
  static inline const char* name = "coordinator";

  coordinator_state(coordinator_actor::pointer self, core::coordinator_options options,
                    node_inside node)
    : self_(self), machine_(std::move(options)), node_(std::move(node)) {}
  coordinator_actor::behavior_type make_behavior();

private:
  void on(const core::coordinator_event& event);

  coordinator_actor::pointer self_;
  core::coordinator_machine machine_;
  node_inside node_;
};

}  // namespace shoal::actors
