#include "actors/roads.hpp"

#include <algorithm>
#include <array>

#include "base/rng.hpp"

namespace shoal::actors {

namespace {

using namespace std::chrono_literals;

constexpr auto dial_deadline = 2s;
constexpr std::size_t waiting_max = 64;  // a view has one report and one verdict under way

}  // namespace

std::chrono::milliseconds backoff(std::uint32_t tries, std::uint64_t salt) {
  auto most = std::min<std::uint64_t>(1000, std::uint64_t{20} << std::min(tries, 10u));
  std::array<std::uint64_t, 2> key{salt, tries};
  return std::chrono::milliseconds(most / 2 + rng::of(key, "backoff").below(most / 2 + 1));
}

roads::roads(node_inside::pointer self, dialer through, lost listener)
  : self_(self), dialer_(std::move(through)), lost_(std::move(listener)) {}

void roads::send(const core::member& to, core::sender me, core::peer_message what) {
  auto [found, is_new] = roads_.try_emplace(to.who, road{to, {}, {}, 0, self_->clock().now()});
  auto& way = found->second;
  if (way.open) return deliver(way, {me, std::move(what)});
  way.to = to;
  way.waiting.push_back({me, std::move(what)});
  if (way.waiting.size() > waiting_max) way.waiting.pop_front();
  if (is_new) dial_peer(way);
}

void roads::dial_peer(road& way) {
  ++way.tries;
  auto who = way.to.who;
  dial<node_actor>(
    self_, dialer_, way.to.at.host, way.to.at.control_port, dial_deadline,
    [this, who](const node_actor& at) {
      if (auto found = roads_.find(who); found != roads_.end()) opened(found->second, at);
    },
    [this, who](const error& why) { missed(who, why); });
}

void roads::missed(core::sender peer, const error& why) {
  auto found = roads_.find(peer);
  if (found == roads_.end() || found->second.open) return;
  if (self_->clock().now() - found->second.since < patience_)
    return self_->delayed_send(self_, backoff(found->second.tries, peer.node.value), redial{peer});
  roads_.erase(found);
  lost_({peer.node, why.text});
}

void roads::again(core::sender peer) {
  auto found = roads_.find(peer);
  if (found != roads_.end() && !found->second.open) dial_peer(found->second);
}

void roads::heard(core::sender from, const caf::strong_actor_ptr& at) {
  if (!at) return;
  auto [found, is_new] = roads_.try_emplace(from, road{{from, {}}, {}, {}, 0, {}});
  opened(found->second, caf::actor_cast<node_actor>(at));
}

void roads::opened(road& way, const node_actor& at) {
  if (way.open) return;
  way.open = at;
  self_->monitor(at);
  for (auto& what : std::exchange(way.waiting, {})) deliver(way, what);
}

void roads::ended(const caf::actor_addr& at) {
  auto found = std::ranges::find_if(
    roads_, [&](auto& entry) { return entry.second.open && entry.second.open.address() == at; });
  if (found == roads_.end()) return;
  auto peer = found->first.node;
  roads_.erase(found);
  lost_({peer, "its control connection ended"});
}

void roads::keep(const std::vector<core::member>& members) {
  std::erase_if(roads_, [&](auto& entry) {
    auto stays = std::ranges::find(members, entry.first, &core::member::who) != members.end();
    if (!stays && entry.second.open) self_->demonitor(entry.second.open.address());
    return !stays;
  });
}

void roads::deliver(const road& way, const letter& what) {
  std::visit(
    [&]<class T>(const T& message) {
      if constexpr (std::is_same_v<T, core::verdict>)
        self_->send(way.open, core::mailed_verdict{what.from, message});
      else
        self_->send(way.open, message);
    },
    what.what);
}

}  // namespace shoal::actors
