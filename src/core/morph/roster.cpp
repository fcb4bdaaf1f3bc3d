#include "core/morph/roster.hpp"

#include <algorithm>

namespace shoal::core {

roster_node* roster::find(node_id node) {
  auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : &found->second;
}

const roster_node* roster::find(node_id node) const {
  auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : &found->second;
}

roster_node* roster::at(link_id link) {
  auto found = links_.find(link);
  return found == links_.end() ? nullptr : find(found->second);
}

void roster::connect(roster_node& node, link_id link, time_point now) {
  disconnect(node);
  node.link = link;
  node.alive = true;
  node.suspect = node.stuck = node.exited = false;
  node.link_ended.reset();
  node.last_heard = now;
  links_[link] = node.who.node;
}

void roster::disconnect(roster_node& node) {
  links_.erase(node.link);
  node.link = {};
  node.alive = false;
}

std::vector<node_id> roster::alive() const {
  std::vector<node_id> ids;
  for (auto& [id, node] : nodes_)
    if (node.alive) ids.push_back(id);
  return ids;
}

void roster::forget(const std::vector<node_id>& keep, time_point before) {
  std::erase_if(nodes_, [&](auto& entry) {
    auto& [id, node] = entry;
    return !node.alive && node.last_heard < before && std::ranges::find(keep, id) == keep.end();
  });
}

}  // namespace shoal::core
