#pragma once

#include "actors/interfaces.hpp"

namespace shoal::actors {

/// Stands between the NODE and the thread that trains: calls the runner's port, which never blocks,
/// and passes on what the runner says, in order.
class stage_state {
public:
  static inline const char* name = "stage";

  stage_state(stage_actor::pointer self, core::stage_runner* runner, node_actor node)
    : self_(self), runner_(*runner), node_(std::move(node)) {}
  stage_actor::behavior_type make_behavior();

private:
  stage_actor::pointer self_;
  core::stage_runner& runner_;
  node_actor node_;
};

}  // namespace shoal::actors
