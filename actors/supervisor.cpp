#include "actors/supervisor.hpp"

#include <exception>

#include "core/membership/failure_detector.hpp"

namespace shoal::actors {

using namespace std::chrono_literals;

supervisor_state::supervisor_state(supervisor_inside::pointer self,
                                   core::supervisor_options options, supervisor_ports ports,
                                   std::vector<step_id> checkpoints)
  : self_(self),
    interval_(core::heartbeat_interval(options.job.timeouts)),
    machine_(std::move(options)),
    ports_(std::move(ports)),
    checkpoints_(std::move(checkpoints)) {}

supervisor_inside::behavior_type supervisor_state::make_behavior() {
  self_->set_down_handler([this](const caf::down_msg& down) { on_down(down); });
  on(core::checkpoints_found{checkpoints_});
  self_->delayed_send(self_, interval_, tick{});
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
    [this](const local<core::supervisor_event>& event) { on(*event.value); },
    [this](tick) { on_tick(); },
    [this](hang_up) { on_hang_up(); },
    [this](hang_up_now) { self_->quit(); },
  };
}

void supervisor_state::hear(core::node_message message) {
  auto link = link_of(self_->current_sender(), std::holds_alternative<core::hello>(message));
  if (link) on(core::heard{link, std::move(message)});
}

core::answer supervisor_state::reply(const core::question& asked) {
  if (asked.what == "leave")
    on(core::leave_asked{asked.node});
  else if (asked.what != "status")
    return {true, "unknown question '" + asked.what + "'"};
  try {
    auto text = ports_.describe(machine_.status());
    if (text.size() <= core::answer_bytes_max) return {false, std::move(text)};
    return {true, "the status is too long to be sent"};
  } catch (const std::exception& what) {  // a question must not end the job
    return {true, std::string("the status cannot be told: ") + what.what()};
  }
}

void supervisor_state::on(const core::supervisor_event& event) {
  apply(machine_.step(self_->clock().now(), event));
}

void supervisor_state::on_tick() {
  apply(machine_.tick(self_->clock().now()));
  self_->delayed_send(self_, interval_, tick{});
}

void supervisor_state::on_down(const caf::down_msg& down) {
  auto found = links_.find(down.source);
  if (found == links_.end()) return;
  auto link = found->second;
  links_.erase(found);
  nodes_.erase(link);
  if (link) on(core::link_lost{link, "its connection ended"});
  if (hanging_up_ && links_.empty()) self_->quit();
}

void supervisor_state::on_hang_up() {
  hanging_up_ = true;
  if (links_.empty()) return self_->quit();
  self_->delayed_send(self_, 500ms, hang_up_now{});
}

/// 0 for who has not said hello through this connection, or was dropped since.
core::link_id supervisor_state::link_of(const caf::strong_actor_ptr& node, bool is_hello) {
  if (!node) return {};
  auto address = caf::actor_cast<caf::actor_addr>(node);
  auto found = links_.find(address);
  auto known = found != links_.end();
  if (known && (found->second || !is_hello)) return found->second;
  if (!is_hello) {  // it believes in a connection that we have lost
    self_->send(caf::actor_cast<node_actor>(node), core::dropped{});
    return {};
  }
  last_link_ = last_link_.next();
  links_[address] = last_link_;
  auto handle = nodes_[last_link_] = caf::actor_cast<node_actor>(node);
  if (!known) self_->monitor(handle);
  return last_link_;
}

// -- actions: false when those behind this one must not happen ------------------------------------

void supervisor_state::apply(const std::vector<core::supervisor_action>& actions) {
  for (auto& action : actions)
    if (!std::visit([this](auto& a) { return act(a); }, action)) return;
}

bool supervisor_state::act(const core::send& action) {
  auto node = nodes_.find(action.to);
  if (node != nodes_.end())
    std::visit([&](auto& message) { self_->send(node->second, message); }, action.what);
  return true;
}

/// A supervisor that cannot remember must not go on: everyone is told to stop.
bool supervisor_state::act(const core::persist& action) {
  if (ledger_lost_) return true;
  auto kept = ports_.persist(action.what);
  if (kept) return true;
  ledger_lost_ = true;
  on(core::stop_asked{kept.error().code, "the ledger cannot be written: " + kept.error().text});
  return false;
}

bool supervisor_state::act(const core::drop_link& action) {
  auto node = nodes_.find(action.link);
  if (node == nodes_.end()) return true;
  self_->send(node->second, core::dropped{});
  links_[node->second.address()] = {};
  nodes_.erase(node);
  return true;
}

bool supervisor_state::act(const core::report& action) {
  ports_.reported(action, machine_.status());
  return true;
}

bool supervisor_state::act(const core::step_done& action) {
  ports_.stepped(action);
  return true;
}

bool supervisor_state::act(const core::finished& action) {
  ports_.finished(action);
  return true;
}

}  // namespace shoal::actors
