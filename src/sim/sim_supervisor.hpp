#pragma once
// The supervisor's process in the simulator: the machine, its links, and a disk for the ledger.

#include <map>
#include <memory>
#include <vector>

#include "sim/world.hpp"

namespace shoal::sim {

/// A control connection as both ends see it.
struct connection {
  int place = 0;
  sim_supervisor* to = nullptr;
  core::link_id link;
  bool lost = false;  ///< messages under way are dropped
  bool node_open = true;
  bool supervisor_open = true;
};

class sim_supervisor : public process {
public:
  explicit sim_supervisor(world& w);
  void start();
  void crash();

  /// A node has connected. It says hello next.
  void accept(std::shared_ptr<connection> c) { accepted_.push_back(std::move(c)); }
  void hear(const std::shared_ptr<connection>& c, const core::node_message& message);
  void lost(const std::shared_ptr<connection>& c);
  void ask_to_leave(node_id node);
  core::supervisor_status status() const { return machine_.status(); }
  /// The next persist is the last thing it does.
  void crash_at_persist() { doomed_ = true; }

private:
  void handle(const core::supervisor_event& event);
  void tick();
  void carry_out(const std::vector<core::supervisor_action>& actions);
  void inspect(const std::vector<core::supervisor_action>& actions);
  void close(const std::shared_ptr<connection>& c);

  world& world_;
  core::supervisor_machine machine_;
  std::map<core::link_id, std::shared_ptr<connection>> links_;
  std::vector<std::shared_ptr<connection>> accepted_;
  core::link_id next_link_{1};
  view_id inspected_prepare_, inspected_commit_;
  step_id meet_;
  bool doomed_ = false;
};

}  // namespace shoal::sim
