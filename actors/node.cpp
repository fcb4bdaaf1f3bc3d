#include "actors/node.hpp"

#include <algorithm>

#include "actors/checkpoint_writer.hpp"
#include "actors/coordinator.hpp"
#include "actors/resident_memory.hpp"
#include "actors/stage.hpp"
#include "core/membership/failure_detector.hpp"

namespace shoal::actors {

using namespace std::chrono_literals;

node_state::node_state(node_actor::pointer self, std::shared_ptr<const node_host_options> options,
                       core::member_options me, std::function<void(node_end)> ended)
  : self_(self),
    options_(std::move(options)),
    me_(std::move(me)),
    ended_(std::move(ended)),
    interval_(core::heartbeat_interval(me_.timeouts)),
    knocking_since_(self->clock().now()) {}

node_actor::behavior_type node_state::make_behavior() {
  self_->set_down_handler([this](const caf::down_msg& down) { on_down(down); });
  return {
    [this](const core::welcome& m) { command(m); },
    [this](const core::refused& m) { command(m); },
    [this](const core::halt& m) { command(m); },
    [this](const core::prepare& m) { command(m); },
    [this](const core::commit& m) { command(m); },
    [this](const core::drain& m) { command(m); },
    [this](const core::stop& m) { command(m); },
    [this](const core::lease& m) { command(m); },
    [this](const core::stage_report& m) { on(core::from_peer{m.from.node, m}); },
    [this](const core::replica_report& m) { on(core::from_peer{m.from.node, m}); },
    [this](const core::mailed_verdict& m) { on(core::from_peer{m.from, m.word}); },
    [this](const core::parts_written& m) { on(core::from_peer{m.from.node, m}); },
    [this](const local<core::member_event>& event) { on(*event.value); },
    [this](const local<std::vector<core::coordinator_action>>& wishes) { obey(*wishes.value); },
    [this](core::tick) { on_tick(); },
    [this](core::knock) { knock(); },
  };
}

void node_state::on(const core::member_event& event) {
  if (!exited_ && machine_) apply(machine_->step(self_->clock().now(), event));
}

void node_state::on_tick() {
  if (exited_) return;
  auto progress = engine_ ? engine_->runner->progress() : core::runner_progress{};
  apply(machine_->tick(self_->clock().now(), progress, resident_memory()));
  self_->delayed_send(self_, interval_, core::tick{});
}

// -- the supervisor -------------------------------------------------------------------------------

void node_state::knock() {
  if (!machine_) {  // the first one comes once our own port is known
    me_.at.control_port = options_->port;
    machine_.emplace(me_);
    self_->delayed_send(self_, interval_, core::tick{});
  }
  if (exited_ || supervisor_) return;
  dial<supervisor_actor>(
    self_, options_->supervisor_host, options_->supervisor_port, 2s,
    [this](const supervisor_actor& found) { met(found); },
    [this](const std::string& why) { missed(why); });
}

void node_state::met(const supervisor_actor& supervisor) {
  if (supervisor_ || exited_) return;
  supervisor_ = supervisor;
  self_->monitor(supervisor_);
  backoff_ = 20ms;
  on(core::supervisor_found{});
}

void node_state::missed(const std::string& why) {
  if (!welcome_ && self_->clock().now() - knocking_since_ > options_->join_timeout)
    return act(core::exit_node{errc::unreachable, why + "; is the supervisor running?"});
  backoff_ = std::min(2 * backoff_, std::chrono::milliseconds(1000));
  // The process id spreads the nodes that lost the same supervisor at the same moment.
  self_->delayed_send(self_, backoff_ + std::chrono::milliseconds(::getpid() % 20), core::knock{});
}

void node_state::on_down(const caf::down_msg& down) {
  if (supervisor_ && down.source == supervisor_.address()) {
    supervisor_ = nullptr;
    say("the connection to the supervisor ended; knocking again");
    on(core::supervisor_lost{"its connection ended"});
    return self_->send(self_, core::knock{});
  }
  for (auto& [who, way] : roads_)
    if (way.handle && down.source == way.handle.address()) {
      roads_.erase(who);
      return on(core::peer_lost{who.node, "its control connection ended"});
    }
}

void node_state::act(const core::to_supervisor& action) {
  if (supervisor_) std::visit([&](auto& message) { self_->send(supervisor_, message); }, action.what);
}

void node_state::act(const core::joined& action) {
  welcome_ = true;
  if (!engine_) make_engine(action.what);
}

void node_state::make_engine(const core::welcome& welcome) {
  auto inbox = std::make_shared<stage_actor>();  // filled in below, before the runner can speak
  auto made = options_->make_engine(welcome.job_text, welcome.job, [inbox](core::runner_event event) {
    caf::anon_send(*inbox, make_local(std::move(event)));
  });
  if (!made) return act(core::exit_node{made.error().code, made.error().text});
  engine_ = *std::move(made);
  machine_->use(engine_->job.timeouts);
  interval_ = core::heartbeat_interval(engine_->job.timeouts);
  node_actor me = self_;
  stage_ = spawn_state<stage_actor, stage_state>(self_->system(), engine_->runner, me);
  *inbox = stage_;
  writer_ = spawn_state<checkpoint_writer_actor, checkpoint_writer_state>(
    self_->system(), static_cast<const node_engine*>(&*engine_), engine_->block_count, me);
}

// -- the engine -----------------------------------------------------------------------------------

void node_state::act(const core::runner_get_ready& action) {
  members_ = action.what.members;
  std::erase_if(roads_, [&](auto& entry) {
    return std::ranges::find(members_, entry.first, &core::member::who) == members_.end();
  });
  self_->send(stage_, make_local(action));
}

void node_state::act(const core::runner_begin& action) {
  self_->send(stage_, core::commit{{}, action.view});
}
void node_state::act(const core::runner_decide& action) { self_->send(stage_, action.what); }
void node_state::act(const core::runner_halt&) { self_->send(stage_, core::halt{}); }
void node_state::act(const core::write_checkpoint& action) {
  self_->send(writer_, make_local(action.what));
}
void node_state::act(const core::collect_parts& action) { self_->send(writer_, action.what); }

// -- the coordinator ------------------------------------------------------------------------------

void node_state::act(const core::start_coordinator& action) {
  act(core::stop_coordinator{});
  members_ = action.members;
  coordinator_ = spawn_state<coordinator_actor, coordinator_state>(
    self_->system(),
    core::coordinator_options{.job = engine_->job,
                              .view = action.view,
                              .self = action.self,
                              .shape = action.shape,
                              .replica = action.replica,
                              .step = action.step},
    node_actor{self_});
}

void node_state::act(const core::stop_coordinator&) {
  if (coordinator_) caf::anon_send_exit(coordinator_, caf::exit_reason::user_shutdown);
  coordinator_ = nullptr;
}

void node_state::act(const core::to_coordinator& action) {
  if (coordinator_)
    std::visit([&](auto& message) { self_->send(coordinator_, message); }, action.what);
}

void node_state::obey(const std::vector<core::coordinator_action>& actions) {
  for (auto& action : actions) {
    if (auto* stage = std::get_if<core::tell_stage>(&action)) {
      if (stage->to == machine_->self().node) on(core::from_peer{stage->to, stage->what});
      else pass_on(stage->to, stage->what);
    } else if (auto* other = std::get_if<core::tell_coordinator>(&action)) {
      std::visit([&](auto& message) { pass_on(other->to, message); }, other->what);
    } else {
      on(core::from_coordinator{std::get<core::tell_supervisor>(action).what});
    }
  }
}

// -- other nodes ----------------------------------------------------------------------------------

void node_state::pass_on(node_id to, core::peer_message what) {
  auto found = std::ranges::find(members_, to, [](auto& m) { return m.who.node; });
  if (found != members_.end()) act(core::to_peer{*found, std::move(what)});
}

void node_state::act(const core::to_peer& action) {
  auto [found, is_new] = roads_.try_emplace(action.to.who, road{action.to, {}, false, {}});
  auto& way = found->second;
  if (way.handle) return deliver(way, action.what);
  way.waiting.push_back(action.what);
  if (!way.dialing) dial_peer(way);
}

void node_state::dial_peer(road& way) {
  way.dialing = true;
  auto who = way.to.who;
  dial<node_actor>(
    self_, way.to.at.host, way.to.at.control_port, 2s,
    [this, who](const node_actor& found) {
      auto at = roads_.find(who);
      if (at == roads_.end()) return;
      at->second.handle = found;
      at->second.dialing = false;
      self_->monitor(found);
      for (auto& message : std::exchange(at->second.waiting, {})) deliver(at->second, message);
    },
    [this, who](const std::string& why) {
      if (roads_.erase(who) > 0) on(core::peer_lost{who.node, why});
    });
}

void node_state::deliver(road& way, const core::peer_message& what) {
  if (auto* word = std::get_if<core::verdict>(&what))
    return self_->send(way.handle, core::mailed_verdict{machine_->self().node, *word});
  std::visit(
    [&](auto& message) {
      if constexpr (!std::is_same_v<std::decay_t<decltype(message)>, core::verdict>)
        self_->send(way.handle, message);
    },
    what);
}

// -- the end --------------------------------------------------------------------------------------

void node_state::apply(const std::vector<core::member_action>& actions) {
  for (auto& action : actions) {
    if (exited_) return;
    std::visit([this](auto& a) { act(a); }, action);
  }
}

void node_state::act(const core::exit_node& action) {
  if (exited_) return;
  exited_ = true;
  stop_children();
  ended_({action.failure, action.reason});
}

void node_state::stop_children() {
  act(core::stop_coordinator{});
  if (stage_) caf::anon_send_exit(stage_, caf::exit_reason::user_shutdown);
  if (writer_) caf::anon_send_exit(writer_, caf::exit_reason::user_shutdown);
  stage_ = nullptr;
  writer_ = nullptr;
  roads_.clear();
  supervisor_ = nullptr;
}

void node_state::say(const std::string& sentence) const {
  if (options_->log) options_->log(sentence);
}

}  // namespace shoal::actors
