#include "sim/sim_node.hpp"

#include <algorithm>
#include <string>

#include "core/membership/failure_detector.hpp"

namespace shoal::sim {

using namespace core;

namespace {

member_options options_for(const world& w, int place) {
  member_options o;
  o.build = "sim";
  o.at = {"sim", static_cast<std::uint16_t>(place), 0};
  o.process = static_cast<std::uint64_t>(place) + 1000;
  o.memory_bytes = 1 << 30;
  o.timeouts = w.job.timeouts;
  return o;
}

}  // namespace

sim_node::sim_node(world& w, int place)
  : process(w.loop),
    world_(w),
    place_(place),
    member_(options_for(w, place)),
    runner_(make_runner_world()),
    collector_(w.draw.block_count) {}

runner_world sim_node::make_runner_world() {
  auto tell = [this](runner_event e) {
    later(1us, [this, e = std::move(e)] { handle(from_runner{e}); });
  };
  auto send = [this](int to, const frame& f, nanoseconds work) {
    world_.send_between(
      place_, to, [this, to, f] { world_.node(to).frame_arrived(place_, f); }, work);
  };
  auto refuses = [this](int peer) { return !world_.node(peer).alive(); };
  auto reachable = [this](int peer) { return !world_.net.is_cut(place_, peer); };
  return {world_.job,         world_.draw.block_count,         *this, world_.random, world_.check,
          world_.checkpoints, world_.draw.fetch_failure_share, tell,  send,          refuses,
          reachable};
}

void sim_node::start() {
  world_.note("node starts", static_cast<std::uint64_t>(place_));
  later(world_.some(0ms, 30ms), [this] { dial(); });
  later(world_.some(0ms, 30ms), [this] { tick(); });
}

void sim_node::tick() {
  carry_out(member_.tick(loop().now(), runner_.progress(), 0));
  later(heartbeat_interval(world_.job.timeouts), [this] { tick(); });
}

void sim_node::handle(const member_event& event) {
  std::vector<member_event> events{event};
  if (world_.options.broken.member_events)
    events = world_.options.broken.member_events(member_, event);
  for (auto& e : events) {
    carry_out(member_.step(loop().now(), e));
    if (auto from = std::get_if<from_supervisor>(&event))
      if (auto h = std::get_if<halt>(&from->what))
        world_.check.heard(id(), h->view, runner_.trains());
  }
}

void sim_node::carry_out(const std::vector<member_action>& actions) {
  for (auto& action : actions) {
    if (!alive()) return;
    std::visit([&](auto& a) { do_(a); }, action);
  }
}

// -- the supervisor's connection ------------------------------------------------------------------

void sim_node::dial() {
  if (connection_) return;
  auto supervisor = world_.supervisor.get();
  if (!supervisor || !supervisor->alive() || world_.net.is_cut(0, place_))
    return later(world_.some(30ms, 150ms), [this] { dial(); });
  connection_ = std::make_shared<connection>();
  connection_->place = place_;
  connection_->to = supervisor;
  supervisor->accept(connection_);
  world_.note("node dials", static_cast<std::uint64_t>(place_));
  handle(supervisor_found{});
}

void sim_node::hear(const std::shared_ptr<connection>& c, const supervisor_message& message) {
  run([this, c, message] {
    if (c == connection_ && !c->lost) handle(from_supervisor{message});
  });
}

void sim_node::lost(const std::shared_ptr<connection>& c) {
  run([this, c] {
    if (c != connection_) return;
    connection_.reset();
    handle(supervisor_lost{"the connection ended"});
    later(world_.some(1ms, 60ms), [this] { dial(); });
  });
}

void sim_node::do_(const to_supervisor& a) {
  auto c = connection_;
  if (!c) return;
  if (!std::holds_alternative<heartbeat>(a.what))
    world_.note("node tells", static_cast<std::uint64_t>(place_), a.what.index());
  world_.net.send(place_, 0,
                  [c, what = a.what] { c->to->run([c, what] { c->to->hear(c, what); }); });
}

void sim_node::do_(const joined& a) {
  world_.note("node is in", static_cast<std::uint64_t>(place_), a.what.you.node.value);
  later(world_.some(0ms, 200ms), [this] { member_.use(world_.job.timeouts); });
}

// -- peers ----------------------------------------------------------------------------------------

void sim_node::do_(const to_peer& a) { send_peer(a.to, a.what); }

void sim_node::send_peer(const member& to, peer_message what) {
  int peer = to.at.control_port;
  world_.send_between(place_, peer, [this, peer, from = id(), what = std::move(what)] {
    world_.node(peer).hear_peer(from, what);
  });
}

void sim_node::hear_peer(node_id from_id, const peer_message& message) {
  run([this, from_id, message] { handle(from_peer{from_id, message}); });
}

void sim_node::frame_arrived(int from, const frame& f) {
  run([this, from, f] { runner_.arrived(from, f); });
}

void sim_node::broken(int peer) {
  run([this, peer] {
    auto peer_id = world_.node(peer).id();
    runner_.broken(peer);
    if (peer_id) handle(peer_lost{peer_id, "the connection to a peer ended"});
  });
}

// -- the coordinator ------------------------------------------------------------------------------

void sim_node::do_(const start_coordinator& a) {
  coordinator_options o{world_.job, a.view, a.self, a.shape, a.replica, a.step};
  coordinator_.emplace(coordination{o, coordinator_machine(o), a.members});
}

void sim_node::do_(const to_coordinator& a) {
  if (!coordinator_) return;
  later(5us, [this, view = coordinator_->options.view, what = a.what] {
    if (!coordinator_ || coordinator_->options.view != view) return;
    std::visit([&](auto& e) { coordinate(e); }, what);
  });
}

void sim_node::coordinate(const coordinator_event& event) {
  std::vector<coordinator_event> events{event};
  if (world_.options.broken.coordinator_events)
    events = world_.options.broken.coordinator_events(coordinator_->options, event);
  for (auto& e : events)
    for (auto& action : coordinator_->machine.step(loop().now(), e)) {
      auto endpoint_of = [&](node_id node) {
        return *std::ranges::find_if(coordinator_->members,
                                     [&](auto& m) { return m.who.node == node; });
      };
      if (auto c = std::get_if<tell_coordinator>(&action))
        std::visit([&](auto& what) { send_peer(endpoint_of(c->to), what); }, c->what);
      else if (auto s = std::get_if<tell_stage>(&action)) {
        if (s->to != id())
          send_peer(endpoint_of(s->to), s->what);
        else
          later(5us, [this, word = s->what] { handle(from_peer{id(), word}); });
      } else if (auto t = std::get_if<tell_supervisor>(&action)) {
        if (auto d = std::get_if<decided>(&t->what)) {
          world_.note("decided", d->what.step.value, d->what.view.value);
          world_.check.decided(d->what);
        }
        later(5us, [this, what = t->what] { handle(from_coordinator{what}); });
      }
    }
}

// -- checkpoints ----------------------------------------------------------------------------------

void sim_node::do_(const write_checkpoint& a) {
  later(world_.some(5ms, 200ms), [this, what = a.what] {
    parts_written made;
    made.view = what.view;
    made.step = what.step;
    for (auto& b : what.blocks)
      made.parts.push_back({b.block, "block-" + std::to_string(b.block), 8, b.digest, b.digest});
    if (!world_.calm && world_.random.uniform() < world_.draw.write_failure_share)
      made.failure = "the disk is full";
    handle(from_writer{made});
  });
}

void sim_node::do_(const collect_parts& a) {
  if (!a.what.failure.empty()) {
    checkpoint_done dropped{{}, a.what.step, a.what.failure};
    later(10us, [this, dropped] { handle(from_writer{dropped}); });
  }
  auto whole = collector_.add(a.what);
  if (!whole) return;
  later(world_.some(1ms, 30ms), [this, step = a.what.step, parts = *whole] {
    world_.checkpoints.put(step, parts);
    world_.note("checkpoint", step.value);
    handle(from_writer{checkpoint_done{{}, step, ""}});
  });
}

// -- the end --------------------------------------------------------------------------------------

void sim_node::end(std::string_view how) {
  world_.note(how, static_cast<std::uint64_t>(place_));
  die();
  if (auto c = std::exchange(connection_, nullptr)) {
    c->node_open = false;
    world_.net.send(place_, 0, [c] { c->to->run([c] { c->to->lost(c); }); });
  }
  for (auto& n : world_.nodes)
    if (n->alive())
      world_.net.send(place_, n->place(), [this, peer = n.get()] { peer->broken(place_); });
}

void sim_node::crash() {
  if (!alive()) return;
  ++world_.outcome.crashes;
  end("node crashes");
}

void sim_node::ask_to_leave() {
  leaving_ = true;
  run([this] { handle(leave_signal{"SIGTERM"}); });
}

void sim_node::do_(const exit_node& a) {
  world_.comment("node " + std::to_string(place_) + " exits: " + a.reason);
  if (a.failure == errc::refused || a.failure == errc::protocol || a.failure == errc::foreign)
    world_.check.fail("a node was refused: " + a.reason);
  end("node exits");
}

}  // namespace shoal::sim
