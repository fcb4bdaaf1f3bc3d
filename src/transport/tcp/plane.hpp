#pragma once
// The TCP plane itself: who is who, which connections belong to the open view, and what their ends
// mean. Calls from outside are posted to the io thread; only the gate is touched from both sides.

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "transport/link_clock.hpp"
#include "transport/sink_gate.hpp"
#include "transport/tcp/incoming.hpp"
#include "transport/tcp/outgoing.hpp"
#include "transport/tcp_plane.hpp"

namespace shoal::transport {

class tcp_plane final : public core::tensor_plane, private incoming::judge {
public:
  tcp_plane(tcp_options options, listening_port at);
  ~tcp_plane() override;

  std::uint16_t port() const override { return port_; }
  void attach(core::tensor_sink& sink) override;
  void detach() override { gate_.close(); }
  void open(view_id view, core::sender self, std::vector<core::member> peers,
            std::chrono::nanoseconds deadline) override;
  void halt() override;
  void send(node_id to, core::frame_header header, core::shared_bytes payload) override;
  void resume(node_id from) override;
  std::pair<std::uint64_t, std::uint64_t> traffic() const override;
  std::vector<core::peer_link> links() const override;

private:
  /// A member of the view that was opened last.
  struct peer {
    core::member who;
    std::array<std::shared_ptr<outgoing>, direction_class_count>
      out;  // shared with their pending operations
    link_clock link;
    link_meter meter;  // of what comes from it
  };
  using connection_key = std::pair<node_id, direction_class>;
  using incoming_ptr = std::shared_ptr<incoming>;  // shared with its pending operations

  // On the io thread, here and below.
  void accept();
  void enter(view_id view, core::sender self, std::vector<core::member> members,
             core::time_point deadline);
  void rearrange(std::vector<core::member> members, core::time_point deadline);
  void sort_incoming();
  void dial(peer& to, direction_class direction, core::time_point deadline);
  void drop_dead();
  void transmit(node_id to, core::frame_header header, core::shared_bytes payload);
  void measure_way(node_id to, outgoing& by);
  void resume_now(std::optional<node_id> from);
  void break_peer(node_id who, error why);
  void tell_if_opened();

  result<void> greeted(incoming& from, const greeting& hello) override;
  core::admission admit(incoming& from, const core::frame_header& header) override;
  bool wanted(const core::frame_header& header) override;
  void arrived(incoming& from, const core::frame_header& header,
               core::shared_bytes payload) override;
  void ended(incoming& from, error why) override;
  void left(incoming& from) override;
  void expired(incoming& from) override;
  link_meter* meter(incoming& from) override;

  result<void> check_addressee(const greeting& hello) const;
  const core::member* member(node_id node) const;
  bool is_member(const core::sender& who) const;
  std::size_t parked_count() const;
  void forget(incoming& which);
  void log(log_level level, std::string text) const;

  tcp_options options_;
  std::uint16_t port_ = 0;
  sink_gate gate_;
  std::atomic<std::uint64_t> sent_bytes_ = 0, received_bytes_ = 0;
  mutable std::mutex links_mutex_;
  std::map<node_id, core::link_figures> links_;  // under links_mutex_, of peers_, where known

  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_};
  asio::steady_timer accept_pause_{io_};
  view_id view_;  // opened last
  core::sender self_;
  std::map<node_id, peer> peers_;
  std::set<node_id> broken_;  // peers of view_ that are given up
  bool told_opened_ = false;
  std::vector<incoming_ptr> strangers_;  // oldest first
  std::map<connection_key, incoming_ptr> incoming_;

  std::thread thread_;  // last: runs io_
};

}  // namespace shoal::transport
