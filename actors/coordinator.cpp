#include "actors/coordinator.hpp"

namespace shoal::actors {

coordinator_actor::behavior_type coordinator_state::make_behavior() {
  return {
    [this](const core::stage_report& report) { on(report); },
    [this](const core::replica_report& report) { on(report); },
    [this](const core::verdict& word) { on(word); },
    [this](const core::drain& order) { on(order); },
  };
}

void coordinator_state::on(const core::coordinator_event& event) {
  auto actions = machine_.step(self_->clock().now(), event);
  if (!actions.empty()) self_->send(node_, make_local(std::move(actions)));
}

}  // namespace shoal::actors
