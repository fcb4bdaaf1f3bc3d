#pragma once
// What a memory plane is on the hub's thread: a node with links to others.

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "transport/frame.hpp"
#include "transport/memory/loop.hpp"
#include "transport/memory_plane.hpp"
#include "transport/sink_gate.hpp"

namespace shoal::transport {

class memory_node;

/// The network: who listens on which port. Its maps are touched on the loop's thread only.
class memory_network {
public:
  explicit memory_network(memory_hub::options opts)
    : options(opts), events(opts.how == memory_hub::pace::threaded) {}

  const memory_hub::options options;
  std::map<std::uint16_t, std::shared_ptr<memory_node>> nodes;  // shared with tasks in flight
  std::atomic<std::uint16_t> ports = 0;
  loop events;  // last: its thread ends first
};

/// One direction class from one node to another: a connection's frames in flight.
struct memory_link {
  memory_node* from = nullptr;
  memory_node* to = nullptr;  ///< none while dialing
  core::sender from_who, to_who;
  std::deque<std::pair<core::frame_header, core::shared_bytes>> frames;
  bool waiting = false;  ///< told `later`
  bool closed = false;
};

/// Everything but the gate and the counters belongs to the loop's thread.
class memory_node : public std::enable_shared_from_this<memory_node> {
public:
  memory_node(memory_network& network, std::uint16_t port) : network_(network), port(port) {}

  void enter(view_id view, core::sender self, std::vector<core::member> members,
             core::time_point deadline);
  void drop_queues();
  void transmit(node_id to, core::frame_header header, core::shared_bytes payload);
  void resume(node_id from);
  void resume_all();
  /// Connects to members whose plane is there by now; others are tried again when one appears.
  void dial_missing();
  /// The end of the process.
  void die();

private:
  using link_ptr = std::shared_ptr<memory_link>;  // shared by both ends and deliveries in flight
  struct peer {
    core::member who;
    std::array<link_ptr, direction_class_count> out;
  };

  static bool connected(const peer& p);
  bool is_member(const core::sender& who) const;
  void give_up(view_id view);
  /// False: not yet, the dialer may be ahead of us.
  result<bool> accepts(const core::sender& from, const core::sender& to) const;
  void deliver_soon(const link_ptr& link);
  void deliver(memory_link& link);
  void close(memory_link& link);
  void break_peer(node_id who, error why);
  void tell_if_opened();

  memory_network& network_;

public:
  const std::uint16_t port;
  sink_gate gate;
  std::atomic<std::uint64_t> sent_bytes = 0, received_bytes = 0;

private:
  view_id view_;
  core::sender self_;
  core::time_point deadline_{};
  std::map<node_id, peer> peers_;
  std::set<node_id> broken_;
  bool told_opened_ = false;
  std::vector<link_ptr> in_;
};

}  // namespace shoal::transport
