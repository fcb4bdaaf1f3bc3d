#pragma once
// Bad luck: one fault after the other, from the seed, until they are over; then everything heals.

#include "sim/world.hpp"

namespace shoal::sim {

class bad_luck {
public:
  explicit bad_luck(world& w) : world_(w), left_(w.draw.fault_count) {}
  /// Plans the first fault.
  void begin();

private:
  void next();
  void strike();
  void one_node(int place);
  void cut(int a, int b);
  void crash_supervisor(bool at_persist);
  void all_nodes_lost();
  void calm();
  void keep_enough_nodes();
  int any_node();
  void restart_supervisor_when_dead();

  world& world_;
  std::uint32_t left_;
};

}  // namespace shoal::sim
