#include "transport/tcp/plane.hpp"

#include <algorithm>
#include <csignal>

#include "base/assert.hpp"

namespace shoal::transport {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

tcp_plane::tcp_plane(tcp_options options, listening_port at)
  : options_(std::move(options)), port_(at.port()) {
  auto address = endpoint_of(at.host(), at.port());
  SHOAL_ASSERT(address);  // listen_tcp has used it
  acceptor_.assign(address->protocol(), at.release());
  acceptor_.non_blocking(true);
  accept();

  // Signals are the program's, not ours.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { io_.run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

tcp_plane::~tcp_plane() {
  SHOAL_ASSERT(std::this_thread::get_id() != thread_.get_id());
  gate_.close();
  io_.stop();
  thread_.join();
}

// -- from any thread ------------------------------------------------------------------------------

void tcp_plane::attach(core::tensor_sink& sink) { gate_.attach(sink); }

void tcp_plane::open(view_id view, core::sender self, std::vector<core::member> peers,
                     std::chrono::nanoseconds deadline) {
  gate_.open(view);
  asio::post(
    io_, [this, view, self, peers = std::move(peers), until = clock::now() + deadline]() mutable {
      enter(view, self, std::move(peers), until);
    });
}

void tcp_plane::halt() {
  gate_.halt();
  asio::post(io_, [this] {
    drop_dead();
    resume_now(
      {});  // what waited and is dead is read and forgotten, so that its sender gets rid of it
  });
}

void tcp_plane::send(node_id to, core::frame_header header, core::shared_bytes payload) {
  SHOAL_ASSERT(payload.size == header.bytes);
  asio::post(io_, [this, to, header = std::move(header), payload = std::move(payload)]() mutable {
    transmit(to, std::move(header), std::move(payload));
  });
}

void tcp_plane::resume(node_id from) {
  asio::post(io_, [this, from] { resume_now(from); });
}

std::pair<std::uint64_t, std::uint64_t> tcp_plane::traffic() const {
  return {sent_bytes_, received_bytes_};
}

std::vector<core::peer_link> tcp_plane::links() const {
  std::lock_guard lock(links_mutex_);
  std::vector<core::peer_link> all;
  for (auto& [node, figures] : links_) all.push_back({node, figures});
  return all;
}

// -- opening a view -------------------------------------------------------------------------------

void tcp_plane::enter(view_id view, core::sender self, std::vector<core::member> members,
                      core::time_point deadline) {
  if (!gate_.live(view)) return;  // halted before we came to it
  if (self != self_) {            // the connections greet with another name
    for (auto& [node, p] : peers_)
      for (auto& out : p.out)
        if (out) out->leave();
    peers_.clear();
  }
  view_ = view;
  self_ = self;
  broken_.clear();
  told_opened_ = false;
  drop_dead();
  rearrange(std::move(members), deadline);
  sort_incoming();
  resume_now({});
  tell_if_opened();
}

void tcp_plane::rearrange(std::vector<core::member> members, core::time_point deadline) {
  std::map<node_id, peer> old;
  old.swap(peers_);
  for (auto& m : members) {
    SHOAL_ASSERT(m.who.node != self_.node);
    auto known = old.find(m.who.node);
    if (known != old.end() && known->second.who == m)
      peers_.insert(old.extract(known));
    else
      peers_.emplace(m.who.node,
                     peer{m, {}, link_clock(options_.emulate.rate, options_.emulate.delay), {}});
  }
  {
    std::lock_guard lock(links_mutex_);
    std::erase_if(links_, [this](auto& entry) { return !peers_.contains(entry.first); });
  }
  for (auto& [node, p] : old)
    for (auto& out : p.out)
      if (out) out->leave();
  for (auto& [node, p] : peers_) {
    for (auto direction : {direction_class::pipeline, direction_class::bulk}) {
      auto& out = p.out[static_cast<std::size_t>(direction)];
      if (out)
        out->set_deadline(deadline);
      else
        dial(p, direction, deadline);
    }
  }
}

void tcp_plane::dial(peer& to, direction_class direction, core::time_point deadline) {
  auto& slot = to.out[static_cast<std::size_t>(direction)];
  // Both are called while the connection is ours; a peer that was replaced has been left before.
  auto node = to.who.who.node;
  outgoing::events tell{.ready =
                          [this, node, direction] {
                            log(log_level::debug, "the " + std::string(to_string(direction)) +
                                                    " connection to node " +
                                                    std::to_string(node.value) + " is up");
                            tell_if_opened();
                          },
                        .lost =
                          [this, node, direction](error why) {
                            peers_.at(node).out[static_cast<std::size_t>(direction)] = nullptr;
                            break_peer(node, std::move(why));
                          }};
  slot = std::make_shared<outgoing>(
    io_,
    outgoing::target{
      .peer = to.who,
      .hello = {.job = options_.job, .from = self_, .to = to.who.who, .direction = direction},
      .connect_timeout = options_.connect_timeout},
    std::move(tell), sent_bytes_);
  slot->dial(deadline);
}

void tcp_plane::tell_if_opened() {
  if (told_opened_ || !view_) return;
  for (auto& [node, p] : peers_)
    for (auto& out : p.out)
      if (!out || !out->is_ready()) return;
  told_opened_ = true;
  gate_.opened(view_);
}

void tcp_plane::break_peer(node_id who, error why) {
  if (!gate_.live(view_)) return;  // nobody counts on it now; the next open dials again
  if (!broken_.insert(who).second) return;
  auto& p = peers_.at(who);
  for (auto& out : p.out) {
    if (out) out->leave();
    out = nullptr;
  }
  log(log_level::info, "node " + std::to_string(who.value) + " is out of reach in view " +
                         std::to_string(view_.value) + ": " + why.text);
  gate_.broken(view_, who, std::move(why));
}

// -- sending --------------------------------------------------------------------------------------

void tcp_plane::drop_dead() {
  for (auto& [key, in] : incoming_) in->let_go();
  for (auto& [node, p] : peers_) {
    p.link.clear();
    for (auto& out : p.out)
      if (out) out->clear();
  }
}

void tcp_plane::transmit(node_id to, core::frame_header header, core::shared_bytes payload) {
  if (header.view != view_ || !gate_.live(view_) || broken_.contains(to)) return;
  auto found = peers_.find(to);
  if (found == peers_.end())
    return gate_.broken(
      view_, to,
      {errc::internal, name_of(header) + " was to go to node " + std::to_string(to.value) +
                         ", which is no peer in view " + std::to_string(view_.value)});
  auto& p = found->second;
  if (auto sound = check(header, options_.frame_bytes_max); !sound)
    return break_peer(
      to, in("sending " + name_of(header) + " to node " + std::to_string(to.value), sound.error()));
  std::uint64_t queued = payload.size;
  for (auto& out : p.out) queued += out ? out->queued_bytes() : 0;
  if (queued > options_.queue_bytes_max)
    return break_peer(
      to, {errc::no_memory, "more than " + std::to_string(options_.queue_bytes_max) +
                              " bytes wait to be sent to node " + std::to_string(to.value) +
                              ": it has stopped reading, or the link is far too slow"});
  auto due = p.link.put(clock::now(), payload.size + frame_header_size + frame_trailer_size);
  auto& out = p.out[static_cast<std::size_t>(class_of(header.kind))];
  if (!out) return;  // lost while halted
  measure_way(to, *out);
  out->push({encode(header), std::move(payload), due});
}

void tcp_plane::measure_way(node_id to, outgoing& by) {
  auto round_trip = by.round_trip();
  if (round_trip <= 0ns) return;
  auto one_way = round_trip / 2 + options_.emulate.delay;  // which the kernel knows nothing of
  std::lock_guard lock(links_mutex_);
  links_[to].one_way_ns = static_cast<std::uint64_t>(one_way.count());
}

}  // namespace shoal::transport
