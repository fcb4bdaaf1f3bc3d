#include "actors/node.hpp"

#include <algorithm>

#include "actors/checkpoint_writer.hpp"
#include "actors/coordinator.hpp"
#include "actors/resident_memory.hpp"
#include "actors/stage.hpp"
#include "core/membership/failure_detector.hpp"

namespace shoal::actors {

using namespace std::chrono_literals;

namespace {

// Until the job's timeouts are known: often enough for any.
constexpr auto first_interval = 50ms;
constexpr auto dial_deadline = 2s;

}  // namespace

node_state::node_state(node_inside::pointer self, node_options options)
  : self_(self),
    options_(std::move(options)),
    interval_(first_interval),
    knocking_since_(self->clock().now()),
    door_(node_inside{self}),
    roads_(self, options_.through, [this](core::peer_lost event) { on(event); }) {}

node_inside::behavior_type node_state::make_behavior() {
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
    [this](const core::dropped&) { on_dropped(); },
    [this](const core::stage_report& m) { peer(m.from, m); },
    [this](const core::replica_report& m) { peer(m.from, m); },
    [this](const core::mailed_verdict& m) { peer(m.from, m.word); },
    [this](const core::parts_written& m) { peer(m.from, m); },
    [this](const local<core::member_event>& event) { on(*event.value); },
    [this](const local<std::vector<core::coordinator_action>>& wishes) { obey(*wishes.value); },
    [this](const local<result<node_engine>>& made) { use(*made.value); },
    [this](tick) { on_tick(); },
    [this](knock) { knock_now(); },
    [this](const redial& now) { roads_.again(now.peer); },
  };
}

// -- what comes in --------------------------------------------------------------------------------

void node_state::on(const core::member_event& event) {
  if (!exited_ && machine_) apply(machine_->step(self_->clock().now(), event));
}

void node_state::command(core::supervisor_message what) {
  if (supervisor_ && self_->current_sender() == supervisor_)  // not one that we have lost
    on(core::from_supervisor{std::move(what)});
}

void node_state::peer(core::sender from, core::peer_message what) {
  roads_.heard(from, self_->current_sender());
  on(core::from_peer{from.node, std::move(what)});
}

void node_state::on_tick() {
  beat();
  self_->delayed_send(self_, interval_, tick{});
}

void node_state::beat() {
  auto progress = engine_ ? engine_->runner->progress() : core::runner_progress{};
  apply(machine_->tick(self_->clock().now(), progress, resident_memory()));
}

void node_state::on_down(const caf::down_msg& down) {
  if (supervisor_ && down.source == supervisor_.address())
    lose_supervisor("the connection to the supervisor ended");
  else
    roads_.ended(down.source);
}

void node_state::on_dropped() {
  if (!supervisor_ || self_->current_sender() != supervisor_) return;
  self_->demonitor(supervisor_.address());
  lose_supervisor("the supervisor has given this connection up");
}

// -- the supervisor -------------------------------------------------------------------------------

void node_state::begin() {
  options_.me.at.control_port = options_.control_port();
  machine_.emplace(options_.me);
  on_tick();
}

void node_state::knock_now() {
  if (!machine_) begin();
  if (exited_ || supervisor_) return;
  ++tries_;
  dial<supervisor_actor>(
    self_, options_.through, options_.supervisor_host, options_.supervisor_port, dial_deadline,
    [this](const supervisor_actor& found) { met(found); },
    [this](const error& why) { missed(why); });
}

void node_state::met(const supervisor_actor& supervisor) {
  if (supervisor_ || exited_) return;
  supervisor_ = supervisor;
  self_->monitor(supervisor_);
  missed_why_.clear();
  on(core::supervisor_found{});
}

void node_state::missed(const error& why) {
  if (exited_) return;
  auto late = !welcome_ && self_->clock().now() - knocking_since_ > options_.join_timeout;
  if (late || why.code == errc::refused)
    return act(core::exit_node{why.code, why.text + (late ? "; is the supervisor running?" : "")});
  if (std::exchange(missed_why_, why.text) != why.text) say(why.text + "; knocking again");
  self_->delayed_send(self_, backoff(tries_, options_.me.process), knock{});
}

void node_state::lose_supervisor(const std::string& reason) {
  supervisor_ = nullptr;
  say(reason + "; knocking again");
  on(core::supervisor_lost{reason});
  self_->delayed_send(self_, backoff(tries_, options_.me.process), knock{});
}

void node_state::act(const core::to_supervisor& action) {
  if (supervisor_)
    std::visit([&](auto& message) { self_->send(supervisor_, message); }, action.what);
}

/// Makes the engine at the first welcome. That may take long: heartbeats go on meanwhile.
void node_state::act(const core::joined& action) {
  tries_ = 0;
  if (std::exchange(welcome_, true)) return;
  stage_ = spawn_child<stage_actor, stage_state>(self_, node_inside{self_});
  stage_door_.emplace(stage_);
  options_.make_engine(
    action.what,
    [to = stage_door_->shared](core::runner_event event) {
      to->post(make_local(std::move(event)));
    },
    [to = door_.shared](result<node_engine> made) { to->post(make_local(std::move(made))); });
}

void node_state::use(const result<node_engine>& made) {
  if (exited_) return;
  if (!made) return act(core::exit_node{made.error().code, made.error().text});
  engine_ = *made;
  machine_->use(engine_->job.timeouts);
  roads_.use(engine_->job.timeouts.answer);
  interval_ = core::heartbeat_interval(engine_->job.timeouts);
  self_->send(stage_, make_local(*engine_));
  writer_ = spawn_child<checkpoint_writer_actor, checkpoint_writer_state>(self_, *engine_,
                                                                          node_inside{self_});
  apply(std::exchange(held_, {}));
  beat();  // the supervisor waits to hear that we are ready to work
}

// -- what goes out --------------------------------------------------------------------------------

bool node_state::needs_engine(const core::member_action& action) const {
  return !std::holds_alternative<core::to_supervisor>(action) &&
         !std::holds_alternative<core::to_peer>(action) &&
         !std::holds_alternative<core::joined>(action) &&
         !std::holds_alternative<core::exit_node>(action);
}

void node_state::apply(const std::vector<core::member_action>& actions) {
  for (auto& action : actions) {
    if (exited_) return;
    if (!engine_ && needs_engine(action))
      held_.push_back(action);
    else
      std::visit([this](auto& a) { act(a); }, action);
  }
}

void node_state::act(const core::runner_get_ready& action) {
  members_ = action.what.members;
  roads_.keep(members_);
  self_->send(stage_, make_local(action));
}

void node_state::act(const core::runner_begin& action) { self_->send(stage_, make_local(action)); }
void node_state::act(const core::runner_decide& action) { self_->send(stage_, action.what); }
void node_state::act(const core::runner_halt& action) { self_->send(stage_, make_local(action)); }
void node_state::act(const core::write_checkpoint& action) {
  self_->send(writer_, make_local(action.what));
}
void node_state::act(const core::collect_parts& action) { self_->send(writer_, action.what); }

void node_state::act(const core::start_coordinator& action) {
  end_child(self_, coordinator_);
  members_ = action.members;
  core::coordinator_options options{.job = engine_->job,
                                    .view = action.view,
                                    .self = action.self,
                                    .shape = action.shape,
                                    .replica = action.replica,
                                    .step = action.step};
  coordinator_ = spawn_child<coordinator_actor, coordinator_state>(self_, std::move(options),
                                                                   node_inside{self_});
}

void node_state::act(const core::stop_coordinator&) { end_child(self_, coordinator_); }

void node_state::act(const core::to_coordinator& action) {
  if (coordinator_)
    std::visit([&](auto& message) { self_->send(coordinator_, message); }, action.what);
}

void node_state::obey(const std::vector<core::coordinator_action>& actions) {
  for (auto& action : actions) {
    if (!coordinator_ || self_->current_sender() != coordinator_) return;  // that of a past view
    if (auto* stage = std::get_if<core::tell_stage>(&action)) {
      if (stage->to == machine_->self().node)
        on(core::from_peer{stage->to, stage->what});
      else
        pass_on(stage->to, stage->what);
    } else if (auto* other = std::get_if<core::tell_coordinator>(&action)) {
      std::visit([&](auto& message) { pass_on(other->to, message); }, other->what);
    } else {
      on(core::from_coordinator{std::get<core::tell_supervisor>(action).what});
    }
  }
}

void node_state::pass_on(node_id to, core::peer_message what) {
  auto found = std::ranges::find(members_, to, [](auto& m) { return m.who.node; });
  if (found != members_.end()) act(core::to_peer{*found, std::move(what)});
}

void node_state::act(const core::to_peer& action) {
  roads_.send(action.to, machine_->self(), action.what);
}

void node_state::act(const core::exit_node& action) {
  exited_ = true;
  options_.ended({action.failure, action.reason});
  self_->quit(caf::exit_reason::user_shutdown);  // the children with it
}

void node_state::say(const std::string& sentence) const {
  if (options_.log) options_.log(sentence);
}

}  // namespace shoal::actors
