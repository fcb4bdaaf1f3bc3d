#pragma once

#include <deque>
#include <functional>
#include <map>

#include "actors/interfaces.hpp"

namespace shoal::actors {

/// The ways from a NODE to the other NODEs: dials one when it is first needed, again while it does
/// not answer, and uses the connection that a peer has opened. Part of the NODE, not an actor.
class roads {
public:
  /// A road ended, or could not be opened for `patience`; what waited for it is lost.
  using lost = std::function<void(core::peer_lost)>;

  roads(node_inside::pointer self, dialer through, lost listener);

  /// Sends now, or once the road is open.
  void send(const core::member& to, core::sender me, core::peer_message what);
  /// `from` has spoken to us: the road is open.
  void heard(core::sender from, const caf::strong_actor_ptr& at);
  /// A connection ended.
  void ended(const caf::actor_addr& at);
  /// The pause before another try is over.
  void again(core::sender peer);
  /// Closes the roads to all but these.
  void keep(const std::vector<core::member>& members);
  /// How long a peer may be out of reach.
  void use(core::nanoseconds patience) { patience_ = patience; }

private:
  struct letter {
    core::sender from;
    core::peer_message what;
  };
  struct road {
    core::member to;
    node_actor open;  // null while it is dialed
    std::deque<letter> waiting;
    std::uint32_t tries = 0;
    core::time_point since;
  };

  void dial_peer(road& way);
  void opened(road& way, const node_actor& at);
  void missed(core::sender peer, const error& why);
  void deliver(const road& way, const letter& what);

  node_inside::pointer self_;
  dialer dialer_;
  lost lost_;
  core::nanoseconds patience_ = core::timeout_options{}.answer;
  std::map<core::sender, road> roads_;
};

/// How long to wait before try number `tries` (1, 2, ...): doubling from 20 ms to 1 s, spread by
/// what is told apart by `salt`, so that many do not knock at once.
std::chrono::milliseconds backoff(std::uint32_t tries, std::uint64_t salt);

}  // namespace shoal::actors
