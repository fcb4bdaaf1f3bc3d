#include "actors/supervisor.hpp"

#include "core/membership/failure_detector.hpp"

namespace shoal::actors {

supervisor_state::supervisor_state(supervisor_actor::pointer self, core::supervisor_options options,
                                   supervisor_ports ports, std::vector<step_id> checkpoints)
  : self_(self),
    interval_(core::heartbeat_interval(options.job.timeouts)),
    machine_(std::move(options)),
    ports_(std::move(ports)),
    checkpoints_(std::move(checkpoints)) {}

supervisor_actor::behavior_type supervisor_state::make_behavior() {
  self_->set_down_handler([this](const caf::down_msg& down) { on_down(down); });
  apply(machine_.step(self_->clock().now(), core::checkpoints_found{checkpoints_}));
  self_->delayed_send(self_, interval_, core::tick{});
  return {
    [this](const core::hello& m) { hear(m); },
    [this](const core::standing& m) { hear(m); },
    [this](const core::ready& m) { hear(m); },
    [this](const core::failed& m) { hear(m); },
    [this](const core::heartbeat& m) { hear(m); },
    [this](const core::trouble& m) { hear(m); },
    [this](const core::leaving& m) { hear(m); },
    [this](const core::decided& m) { hear(m); },
    [this](const core::diverged& m) { hear(m); },
    [this](const core::checkpoint_done& m) { hear(m); },
    [this](const core::question& asked) { return reply(asked); },
    [this](const local<core::supervisor_event>& event) { on_event(*event.value); },
    [this](core::tick) { on_tick(); },
  };
}

void supervisor_state::hear(core::node_message message) {
  apply(machine_.step(self_->clock().now(),
                      core::heard{link_of(self_->current_sender()), std::move(message)}));
}

core::answer supervisor_state::reply(const core::question& asked) {
  if (asked.what == "leave") on_event(core::leave_asked{asked.node});
  else if (asked.what != "status") return {true, "unknown question '" + asked.what + "'"};
  return {false, ports_.describe(machine_.status())};
}

void supervisor_state::on_event(const core::supervisor_event& event) {
  apply(machine_.step(self_->clock().now(), event));
}

void supervisor_state::on_tick() {
  apply(machine_.tick(self_->clock().now()));
  self_->delayed_send(self_, interval_, core::tick{});
}

void supervisor_state::on_down(const caf::down_msg& down) {
  auto found = links_.find(down.source);
  if (found == links_.end()) return;
  auto link = found->second;
  links_.erase(found);
  nodes_.erase(link);
  on_event(core::link_lost{link, "its connection ended"});
}

core::link_id supervisor_state::link_of(const caf::strong_actor_ptr& node) {
  auto [found, is_new] = links_.try_emplace(caf::actor_cast<caf::actor_addr>(node), last_link_.next());
  if (is_new) {
    last_link_ = found->second;
    nodes_[last_link_] = caf::actor_cast<node_actor>(node);
    self_->monitor(nodes_[last_link_]);
  }
  return found->second;
}

void supervisor_state::apply(const std::vector<core::supervisor_action>& actions) {
  for (auto& action : actions)
    if (!carry_out(action)) return;
}

/// False when the actions behind this one must not happen.
bool supervisor_state::carry_out(const core::supervisor_action& action) {
  if (auto* to = std::get_if<core::send>(&action)) {
    if (auto node = nodes_.find(to->to); node != nodes_.end())
      std::visit([&](auto& message) { self_->send(node->second, message); }, to->what);
  } else if (auto* ledger = std::get_if<core::persist>(&action)) {
    if (auto kept = ports_.persist(ledger->what); !kept) {
      ports_.finished({kept.error().code, "the ledger cannot be written: " + kept.error().text});
      return false;
    }
  } else if (auto* drop = std::get_if<core::drop_link>(&action)) {
    if (auto node = nodes_.find(drop->link); node != nodes_.end()) {
      self_->demonitor(caf::actor_cast<caf::actor_addr>(node->second));
      links_.erase(caf::actor_cast<caf::actor_addr>(node->second));
      nodes_.erase(node);
    }
  } else if (auto* what = std::get_if<core::report>(&action)) {
    ports_.reported(*what, machine_.status());
  } else if (auto* step = std::get_if<core::step_done>(&action)) {
    ports_.stepped(*step);
  } else {
    ports_.finished(std::get<core::finished>(action));
  }
  return true;
}

}  // namespace shoal::actors
