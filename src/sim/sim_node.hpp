#pragma once
// A node's process in the simulator: member, coordinator, runner, checkpoint writer and its wires.

#include <memory>
#include <optional>
#include <set>

#include "core/checkpoint/manifest.hpp"
#include "sim/fake_runner.hpp"
#include "sim/sim_supervisor.hpp"
#include "sim/world.hpp"

namespace shoal::sim {

class sim_node : public process {
public:
  sim_node(world& w, int place);
  void start();
  /// kill -9: the kernel closes its connections.
  void crash();
  void ask_to_leave();

  // from the network
  void hear(const std::shared_ptr<connection>& c, const core::supervisor_message& message);
  void lost(const std::shared_ptr<connection>& c);
  void hear_peer(node_id from_id, const core::peer_message& message);
  void frame_arrived(int from, const frame& f);
  void broken(int peer);

  int place() const { return place_; }
  node_id id() const { return member_.self().node; }
  const holding& state() const { return runner_.state(); }
  bool leaving() const { return leaving_; }
  void mark_leaving() { leaving_ = true; }
  std::shared_ptr<connection> link() const { return connection_; }
  /// Its connection stands, as far as both ends know.
  bool connected() const {
    return connection_ && !connection_->lost && connection_->supervisor_open;
  }
  core::activity doing() const { return member_.doing(); }

private:
  void dial();
  void tick();
  void handle(const core::member_event& event);
  void carry_out(const std::vector<core::member_action>& actions);
  void do_(const core::to_supervisor& a);
  void do_(const core::to_peer& a);
  void do_(const core::joined& a);
  void do_(const core::runner_get_ready& a) { runner_.get_ready(a.what, a.self); }
  void do_(const core::runner_begin& a) { runner_.begin(a.view); }
  void do_(const core::runner_decide& a) { runner_.decide(a.what); }
  void do_(const core::runner_halt&) { runner_.halt(); }
  void do_(const core::start_coordinator& a);
  void do_(const core::stop_coordinator&) { coordinator_.reset(); }
  void do_(const core::to_coordinator& a);
  void do_(const core::write_checkpoint& a);
  void do_(const core::collect_parts& a);
  void do_(const core::exit_node& a);
  void coordinate(const core::coordinator_event& event);
  void send_peer(const core::member& to, core::peer_message what);
  runner_world make_runner_world();
  void end(std::string_view how);

  struct coordination {
    core::coordinator_options options;
    core::coordinator_machine machine;
    std::vector<core::member> members;
  };

  world& world_;
  int place_;
  core::member_machine member_;
  fake_runner runner_;
  std::optional<coordination> coordinator_;
  core::part_collector collector_;
  std::shared_ptr<connection> connection_;
  bool leaving_ = false;
};

}  // namespace shoal::sim
