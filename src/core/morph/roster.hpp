#pragma once
// The supervisor's list of nodes: who is in, through which link, and what was last heard.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/messages.hpp"
#include "core/morph/supervisor_io.hpp"
#include "core/time.hpp"

namespace shoal::core {

struct roster_node {
  sender who;
  endpoint at;
  std::uint64_t process = 0;
  std::uint64_t memory_bytes = 0;
  link_id link;        ///< 0: not connected
  bool alive = false;  ///< connected, and not judged dead
  bool leaving = false;
  bool leave_refused = false;  ///< people were told that the job cannot do without it
  bool suspect = false;
  bool stuck = false;
  bool starting = true;  ///< its engine is not there yet
  bool exited = false;   ///< its process is known to be gone
  time_point last_heard{};
  std::optional<time_point> link_ended;  ///< by itself: the node died, or will knock again soon
  heartbeat beat;                        ///< newest
  time_point idle_since{};  ///< a member of the running view: has not been training since
  standing stood;           ///< newest

  /// The node as others see it.
  member as_member() const { return {who, at}; }
  bool holds_blocks() const { return !stood.blocks.empty(); }
};

class roster {
public:
  /// The node with this id; null when there is none.
  roster_node* find(node_id node);
  const roster_node* find(node_id node) const;
  /// The node that speaks through `link`.
  roster_node* at(link_id link);

  /// The entry of `node`, made when missing.
  roster_node& entry(node_id node) { return nodes_[node]; }
  /// Binds `link` to the node: it is alive from now on.
  void connect(roster_node& node, link_id link, time_point now);
  /// The node is not alive any more.
  void disconnect(roster_node& node);

  /// All nodes in order of id, for reading and marking.
  std::map<node_id, roster_node>& all() { return nodes_; }
  const std::map<node_id, roster_node>& all() const { return nodes_; }
  std::vector<node_id> alive() const;

  /// Forgets nodes that are dead, not in `keep`, and unheard of since `before`: the list is
  /// bounded.
  void forget(const std::vector<node_id>& keep, time_point before);

private:
  std::map<node_id, roster_node> nodes_;
  std::map<link_id, node_id> links_;
};

}  // namespace shoal::core
