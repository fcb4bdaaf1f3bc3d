#include "transport/memory/node.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"

namespace shoal::transport {

namespace {

std::string name_of(node_id node) { return "node " + std::to_string(node.value); }

}  // namespace

void memory_node::enter(view_id view, core::sender self, std::vector<core::member> members,
                        core::time_point deadline) {
  if (!gate.live(view)) return;
  drop_queues();
  std::map<node_id, peer> old;
  old.swap(peers_);
  for (auto& m : members) {
    SHOAL_ASSERT(m.who.node != self.node);
    auto known = old.find(m.who.node);
    if (known != old.end() && known->second.who == m && self == self_)
      peers_.insert(old.extract(known));
    else
      peers_.emplace(m.who.node, peer{m, {}});
  }
  for (auto& [node, p] : old)
    for (auto& out : p.out)
      if (out) close(*out);
  view_ = view;
  self_ = self;
  broken_.clear();
  told_opened_ = false;
  deadline_ = deadline;
  for (auto& [node, p] : peers_)
    for (auto& out : p.out)
      if (!out)
        out = std::make_shared<memory_link>(
          memory_link{.from = this, .from_who = self_, .to_who = p.who.who, .frames = {}});
  // Connections of an earlier life of a member, or to one of ours, are over.
  for (auto& link : std::vector(in_)) {
    if (auto wanted = accepts(link->from_who, link->to_who); !wanted) {
      auto dialer = link->from->shared_from_this();
      auto who = link->to_who;
      close(*link);
      dialer->break_peer(who.node, wanted.error());
    }
  }
  network_.events.at(deadline, [self = shared_from_this(), view] { self->give_up(view); });
  for (auto& [port, node] : network_.nodes) node->dial_missing();
  resume_all();
  tell_if_opened();
}

result<bool> memory_node::accepts(const core::sender& from, const core::sender& to) const {
  if (!self_.node || to.node != self_.node || to.incarnation > self_.incarnation)
    return !self_.node;
  if (to.incarnation < self_.incarnation)
    return error{errc::refused, "this life of " + name_of(to.node) + " is gone"};
  auto known = peers_.find(from.node);
  if (known != peers_.end() && known->second.who.who.incarnation > from.incarnation)
    return error{errc::refused, "this life of " + name_of(from.node) + " is over"};
  return true;
}

void memory_node::dial_missing() {
  if (!gate.live(view_)) return;
  bool dialed = false;
  for (auto& [node, p] : peers_) {
    auto found = network_.nodes.find(p.who.at.tensor_port);
    if (broken_.contains(node) || found == network_.nodes.end()) continue;
    auto accepted = found->second->accepts(self_, p.who.who);
    if (!accepted) {
      break_peer(node, accepted.error());
      continue;
    }
    if (!*accepted) continue;
    for (auto& out : p.out) {
      if (!out || out->to) continue;
      out->to = found->second.get();
      out->to->in_.push_back(out);
      deliver_soon(out);
      dialed = true;
    }
  }
  if (dialed) tell_if_opened();
}

bool memory_node::connected(const peer& p) {
  return std::ranges::all_of(p.out, [](auto& out) { return out && out->to; });
}

void memory_node::give_up(view_id view) {
  if (view != view_ || !gate.live(view) || network_.events.now() < deadline_) return;
  for (auto& [node, p] : peers_)
    if (!connected(p))
      break_peer(node, {errc::unreachable, name_of(node) + " at " + p.who.at.host + ":" +
                                             std::to_string(p.who.at.tensor_port) +
                                             " cannot be reached on its tensor port in time"});
}

bool memory_node::is_member(const core::sender& who) const {
  auto known = peers_.find(who.node);
  return known != peers_.end() && known->second.who.who == who;
}

void memory_node::tell_if_opened() {
  if (told_opened_ || !view_) return;
  for (auto& [node, p] : peers_)
    if (!connected(p)) return;
  told_opened_ = true;
  gate.opened(view_);
}

void memory_node::drop_queues() {
  for (auto& [node, p] : peers_) {
    for (auto& out : p.out) {
      if (!out) continue;
      out->frames.clear();
      out->waiting = false;
    }
  }
}

void memory_node::transmit(node_id to, core::frame_header header, core::shared_bytes payload) {
  if (header.view != view_ || !gate.live(view_) || broken_.contains(to)) return;
  auto found = peers_.find(to);
  if (found == peers_.end())
    return gate.broken(
      view_, to,
      {errc::internal, name_of(to) + " is no peer in view " + std::to_string(view_.value)});
  if (auto sound = check(header, network_.options.frame_bytes_max); !sound)
    return break_peer(to, in("sending to " + name_of(to), sound.error()));
  std::uint64_t queued = payload.size;
  for (auto& out : found->second.out)
    if (out)
      for (auto& [h, bytes] : out->frames) queued += bytes.size;
  if (queued > network_.options.queue_bytes_max)
    return break_peer(
      to, {errc::no_memory, "more than " + std::to_string(network_.options.queue_bytes_max) +
                              " bytes wait to be sent to " + name_of(to)});
  auto& link = found->second.out[static_cast<std::size_t>(class_of(header.kind))];
  if (!link) return;
  link->frames.emplace_back(std::move(header), std::move(payload));
  if (link->frames.size() == 1) deliver_soon(link);
}

void memory_node::deliver_soon(const link_ptr& link) {
  network_.events.post([link] {
    if (link->to && !link->closed && !link->waiting && !link->frames.empty())
      link->to->deliver(*link);
  });
}

void memory_node::deliver(memory_link& link) {
  auto self = std::ranges::find(in_, &link, &link_ptr::get);
  SHOAL_ASSERT(self != in_.end());
  auto keep = *self;
  auto& [header, payload] = link.frames.front();
  auto answer = gate.admit(link.from_who.node, header);
  switch (answer.what) {
    case core::admission::kind::later:
      link.waiting = true;
      return;
    case core::admission::kind::refuse: {
      error why{errc::protocol, transport::name_of(header) + " is refused: " + answer.reason};
      auto from = link.from->shared_from_this();
      auto from_who = link.from_who, to_who = link.to_who;
      close(link);
      from->break_peer(to_who.node, in(name_of(to_who.node) + " closed the connection", why));
      if (is_member(from_who)) break_peer(from_who.node, why);
      return;
    }
    case core::admission::kind::take:
      SHOAL_ASSERT(answer.into.size == payload.size);
      if (payload.size > 0) std::memcpy(answer.into.data, payload.data, payload.size);
      link.from->sent_bytes += payload.size;
      received_bytes += payload.size;
      gate.arrived(link.from_who.node, header, std::move(answer.into));
      break;
    case core::admission::kind::drop:
      break;
  }
  link.frames.pop_front();
  if (!link.frames.empty()) deliver_soon(keep);
}

void memory_node::resume(node_id from) {
  for (auto& link : in_) {
    if (link->from_who.node != from || !link->waiting) continue;
    link->waiting = false;
    deliver_soon(link);
  }
}

void memory_node::resume_all() {
  for (auto& link : in_) {
    link->waiting = false;
    deliver_soon(link);
  }
}

// Both ends forget the link; nobody is told.
void memory_node::close(memory_link& link) {
  auto& from = *link.from;
  link.closed = true;
  link.frames.clear();
  if (auto p = from.peers_.find(link.to_who.node); p != from.peers_.end())
    for (auto& out : p->second.out)
      if (out.get() == &link) out = nullptr;
  if (link.to) std::erase_if(link.to->in_, [&](auto& entry) { return entry.get() == &link; });
}

void memory_node::break_peer(node_id who, error why) {
  if (!gate.live(view_) || !broken_.insert(who).second) return;
  // Copies: closing takes the entry away. NOLINTNEXTLINE(performance-for-range-copy)
  for (auto out : peers_.at(who).out)
    if (out) close(*out);
  gate.broken(view_, who, std::move(why));
}

void memory_node::die() {
  auto keep = shared_from_this();
  network_.nodes.erase(port);
  auto out = std::move(peers_);
  peers_.clear();
  std::vector<std::pair<memory_node*, core::sender>> bereft;  // who loses whom
  for (auto& [node, p] : out) {
    for (auto& link : p.out) {
      if (!link || !link->to) continue;
      bereft.emplace_back(link->to, link->from_who);
      close(*link);
    }
  }
  for (auto& link : std::vector(in_)) {
    bereft.emplace_back(link->from, link->to_who);
    close(*link);
  }
  for (auto& [node, lost] : bereft) {
    if (node->is_member(lost))
      node->break_peer(lost.node, {errc::unreachable, "the connection to " + name_of(lost.node) +
                                                        " was closed by the other end"});
  }
}

}  // namespace shoal::transport
