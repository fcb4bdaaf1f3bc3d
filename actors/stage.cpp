#include "actors/stage.hpp"

namespace shoal::actors {

stage_actor::behavior_type stage_state::make_behavior() {
  return {
    [this](const local<node_engine>& engine) { runner_ = engine.value->runner; },
    [this](const local<core::runner_get_ready>& order) {
      runner_->get_ready(order.value->what, order.value->self);
    },
    [this](const local<core::runner_begin>& order) { runner_->begin(order.value->view); },
    [this](const core::verdict& word) { runner_->decide(word); },
    [this](const local<core::runner_halt>&) { runner_->halt(); },
    [this](const local<core::runner_event>& event) {
      self_->send(node_, make_local<core::member_event>(core::from_runner{*event.value}));
    },
  };
}

}  // namespace shoal::actors
