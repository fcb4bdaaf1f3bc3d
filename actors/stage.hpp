#pragma once

#include "actors/interfaces.hpp"

namespace shoal::actors {

/// Stands between the NODE and the thread that trains: calls the runner's port, which never blocks,
/// and passes on what the runner says, in order.
class stage_state {
public:
  static inline const char* name = "stage";

  stage_state(stage_actor::pointer self, node_inside node) : self_(self), node_(std::move(node)) {}
  stage_actor::behavior_type make_behavior();

private:
  stage_actor::pointer self_;
  core::stage_runner* runner_ = nullptr;  // given by the first message; outlives the actors
  node_inside node_;
};

}  // namespace shoal::actors
