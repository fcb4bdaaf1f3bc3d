#include "sim/faults.hpp"

#include <algorithm>
#include <vector>

#include "sim/sim_node.hpp"
#include "sim/sim_supervisor.hpp"

namespace shoal::sim {

void bad_luck::begin() {
  if (!world_.options.faults) left_ = 0;
  next();
}

void bad_luck::next() {
  if (left_ == 0) return world_.loop.after(world_.some(0ms, 300ms), [this] { calm(); });
  --left_;
  auto wait = world_.some(1ms, 2 * world_.draw.fault_every);
  if (world_.below(3) == 0) wait = world_.some(50us, 60ms);  // into the morph of the last one
  world_.loop.after(wait, [this] {
    if (world_.finished) return;
    strike();
    restart_supervisor_when_dead();
    next();
  });
}

int bad_luck::any_node() {
  std::vector<int> alive;
  for (auto& n : world_.nodes)
    if (n->alive()) alive.push_back(n->place());
  return alive.empty() ? 0 : alive[world_.below(alive.size())];
}

void bad_luck::strike() {
  int a = any_node(), b = any_node();
  if (world_.useful_nodes() <= world_.nodes_needed() && world_.below(2) == 0) {
    ++world_.outcome.joins;
    world_.spawn_node();
    return;
  }
  switch (world_.below(16)) {
    case 0:
    case 1:
    case 2:
    case 3:
      if (a != 0) world_.node(a).crash();
      if (b != 0 && world_.below(4) == 0) world_.node(b).crash();
      break;
    case 4:
    case 5:
    case 6:
    case 7:
      if (a != 0) one_node(a);
      break;
    case 8:
      if (a != 0) cut(0, a);
      break;
    case 9:
      if (a != b && a != 0 && b != 0) {
        if (world_.below(2) == 0) return cut(a, b);
        ++world_.outcome.glitches;
        world_.sever(a, b);
      }
      break;
    case 10:
    case 11:
    case 12:
      ++world_.outcome.joins;
      world_.spawn_node();
      break;
    case 13:
      crash_supervisor(world_.below(2) == 0);
      break;
    case 14:
      if (world_.below(3) == 0)
        all_nodes_lost();
      else if (a != 0)
        world_.node(a).crash();
      break;
    default:
      if (world_.checkpoints.damage_newest()) world_.note("checkpoint damaged");
  }
}

void bad_luck::one_node(int place) {
  auto& node = world_.node(place);
  auto where = static_cast<std::uint64_t>(place);
  switch (world_.below(4)) {
    case 0:
      world_.note("node freezes", where);
      ++world_.outcome.freezes;
      node.freeze();
      world_.loop.after(world_.some(20ms, 4s), [&w = world_, &node, where] {
        if (node.frozen()) w.note("node thaws", where);
        node.thaw();
      });
      return;
    case 1: {
      auto c = node.link();
      if (!c || world_.net.is_cut(0, place)) return;
      world_.note("link glitch", where);
      ++world_.outcome.glitches;
      c->lost = true;
      world_.loop.after(world_.some(10us, 20ms), [c] { c->to->run([c] { c->to->lost(c); }); });
      world_.loop.after(world_.some(10us, 20ms), [&node, c] { node.lost(c); });
      return;
    }
    case 2:
      world_.note("node is asked to leave", where);
      ++world_.outcome.leaves;
      node.ask_to_leave();
      return;
    default:
      if (node.id() && world_.supervisor->alive() && !world_.supervisor->frozen()) {
        world_.note("supervisor is asked to let go", where);
        ++world_.outcome.leaves;
        node.mark_leaving();
        world_.supervisor->ask_to_leave(node.id());
      }
  }
}

void bad_luck::cut(int a, int b) {
  if (a == 0 && !world_.node(b).connected()) return;  // see checker.hpp, 4
  world_.note("cut", static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b));
  ++world_.outcome.cuts;
  world_.net.cut(a, b);
  if (a != 0)  // TCP gives up at last
    world_.loop.after(world_.some(700ms, 3s), [&w = world_, a, b] {
      if (w.net.is_cut(a, b)) w.sever(a, b);
    });
  world_.loop.after(world_.some(20ms, 5s), [&w = world_, a, b] {
    if (w.net.is_cut(a, b))
      w.note("heals", static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b));
    w.net.heal(a, b);
  });
}

void bad_luck::crash_supervisor(bool at_persist) {
  if (!at_persist && world_.below(3) == 0) {
    world_.note("supervisor freezes");
    ++world_.outcome.freezes;
    world_.supervisor->freeze();
    world_.loop.after(world_.some(20ms, 1500ms), [s = world_.supervisor.get()] { s->thaw(); });
    return;
  }
  if (at_persist)
    world_.supervisor->crash_at_persist();
  else
    world_.supervisor->crash();
}

void bad_luck::restart_supervisor_when_dead() {
  if (!world_.supervisor->alive())
    world_.loop.after(world_.some(10ms, world_.below(2) == 0 ? 200ms : 1500ms), [&w = world_] {
      if (!w.supervisor->alive() && !w.finished) w.start_supervisor();
    });
}

void bad_luck::all_nodes_lost() {
  world_.note("all nodes are lost");
  for (auto& n : world_.nodes)
    if (n->alive()) n->crash();
  auto count = world_.nodes_needed() + world_.below(2);
  for (std::uint64_t i = 0; i < count; ++i)
    world_.loop.after(world_.some(10ms, 900ms), [&w = world_] {
      if (!w.finished) w.spawn_node();
    });
}

/// From here on nothing goes wrong: the job must end.
void bad_luck::calm() {
  if (world_.finished) return;
  world_.note("calm");
  world_.calm = true;
  for (auto [a, b] : world_.net.cuts()) world_.net.heal(a, b);
  for (auto& n : world_.nodes) n->thaw();
  world_.supervisor->thaw();
  keep_enough_nodes();
}

void bad_luck::keep_enough_nodes() {
  if (world_.finished) return;
  if (!world_.supervisor->alive()) world_.start_supervisor();
  if (world_.useful_nodes() < world_.nodes_needed()) world_.spawn_node();
  world_.loop.after(500ms, [this] { keep_enough_nodes(); });
}

}  // namespace shoal::sim
