// The plane's other half: what comes in.

#include <algorithm>

#include "base/assert.hpp"
#include "transport/tcp/plane.hpp"

namespace shoal::transport {

using namespace std::chrono_literals;

namespace {

std::string name_of(const core::sender& who) {
  return "node " + std::to_string(who.node.value) + " (incarnation " +
         std::to_string(who.incarnation.value) + ")";
}

}  // namespace

// -- strangers ------------------------------------------------------------------------------------

void tcp_plane::accept() {
  acceptor_.async_accept([this](asio::error_code ec, tcp::socket socket) {
    if (ec == asio::error::operation_aborted) return;
    if (ec) {  // out of descriptors, most likely: those that we have go on, newcomers wait
      log(log_level::warning,
          "cannot take a connection on tensor port " + std::to_string(port_) + ": " + ec.message());
      accept_pause_.expires_after(100ms);
      accept_pause_.async_wait([this](asio::error_code cancelled) {
        if (!cancelled) accept();
      });
      return;
    }
    if (strangers_.size() >= options_.stranger_count_max) {
      // An honest peer says hello within milliseconds, so the oldest is the least likely to be one.
      log(log_level::warning, "too many connections without a hello on tensor port " +
                                std::to_string(port_) + "; the one from " +
                                strangers_.front()->address() + " is closed");
      strangers_.front()->kill();
      strangers_.erase(strangers_.begin());
    }
    strangers_.push_back(std::make_shared<incoming>(
      std::move(socket), incoming::limits{options_.frame_bytes_max, options_.hello_timeout},
      static_cast<incoming::judge&>(*this), received_bytes_));
    strangers_.back()->start();
    accept();
  });
}

result<void> tcp_plane::check_addressee(const greeting& hello) const {
  if (hello.job != options_.job)
    return error{errc::foreign, "the job's digest is " + std::to_string(hello.job) +
                                  ", here it is " + std::to_string(options_.job) +
                                  "; run all nodes with the same job file"};
  if (!self_.node) return {};  // not opened yet: sorted out when we are
  if (hello.from.node == self_.node)
    return error{errc::protocol,
                 "you call yourself " + name_of(hello.from) + ", which is my own number"};
  if (hello.to.node != self_.node)
    return error{errc::unreachable,
                 "you ask for " + name_of(hello.to) + ", here is " + name_of(self_)};
  if (hello.to.incarnation < self_.incarnation)
    return error{errc::refused,
                 "you ask for " + name_of(hello.to) + ", which is gone: here is " + name_of(self_)};
  return {};
}

result<void> tcp_plane::greeted(incoming& from, const greeting& hello) {
  TRY_VOID(check_addressee(hello));
  auto* known = member(hello.from.node);
  if (known && known->who.incarnation > hello.from.incarnation)
    return error{errc::refused, "you are " + name_of(hello.from) + ", but " + name_of(known->who) +
                                  " has joined since"};
  auto& slot = incoming_[{hello.from.node, hello.direction}];
  if (slot && slot->hello().from.incarnation > hello.from.incarnation)
    return error{errc::refused, "you are " + name_of(hello.from) + ", but " +
                                  name_of(slot->hello().from) + " has connected since"};
  if (!slot && !is_member(hello.from) && parked_count() >= options_.parked_count_max) {
    incoming_.erase({hello.from.node, hello.direction});
    return error{errc::unreachable, "too many connections from nodes outside the view; try later"};
  }

  auto mine = std::ranges::find(strangers_, &from, &incoming_ptr::get);
  SHOAL_ASSERT(mine != strangers_.end());
  // The dialer knows best whether a connection of its own is still good: a new one replaces it.
  if (slot) slot->kill();
  slot = std::move(*mine);
  strangers_.erase(mine);
  if (is_member(hello.from)) return {};
  from.expire_after(options_.park_timeout);
  if (known)
    break_peer(hello.from.node,
               {errc::unreachable,
                name_of(known->who) + " is gone: it came back as " + name_of(hello.from)});
  return {};
}

void tcp_plane::expired(incoming& from) {
  log(log_level::info, "the connection from " + from.address() +
                         " is closed: it has not been in the view for " +
                         shoal::text_of(options_.park_timeout));
  from.close_saying({errc::timeout, "your node has not been in my view for " +
                                      shoal::text_of(options_.park_timeout)});
  forget(from);
}

// -- peers ----------------------------------------------------------------------------------------

// A connection of an earlier life, or to one, goes; one from outside the view waits for a later
// view, since its dialer may be ahead of us.
void tcp_plane::sort_incoming() {
  for (auto i = incoming_.begin(); i != incoming_.end();) {
    auto& in = *i->second;
    auto wanted = check_addressee(in.hello());
    auto* known = member(in.hello().from.node);
    if (wanted && known && known->who.incarnation > in.hello().from.incarnation)
      wanted = error{errc::refused, name_of(known->who) + " has joined since"};
    if (!wanted) {
      in.close_saying(wanted.error());
      i = incoming_.erase(i);
      continue;
    }
    if (is_member(in.hello().from))
      in.do_not_expire();
    else
      in.expire_after(options_.park_timeout);
    ++i;
  }
}

void tcp_plane::resume_now(std::optional<node_id> from) {
  std::vector<incoming_ptr> waiting;  // copied: what they do may remove them
  for (auto& [key, in] : incoming_)
    if (!from || key.first == *from) waiting.push_back(in);
  for (auto& in : waiting) in->resume();
}

core::admission tcp_plane::admit(incoming& from, const core::frame_header& header) {
  return gate_.admit(from.hello().from.node, header);
}

bool tcp_plane::wanted(const core::frame_header& header) { return gate_.live(header.view); }

void tcp_plane::arrived(incoming& from, const core::frame_header& header,
                        core::shared_bytes payload) {
  // Before the sink is told: it may ask for the rate at once.
  if (auto* link = header.bytes < link_meter::frame_bytes_min ? nullptr : meter(from))
    if (auto rate = link->bytes_per_s(); rate != 0) {
      std::lock_guard lock(links_mutex_);
      links_[from.hello().from.node].bytes_per_s = rate;
    }
  gate_.arrived(from.hello().from.node, header, std::move(payload));
}

link_meter* tcp_plane::meter(incoming& from) {
  auto& who = from.hello().from;
  return is_member(who) ? &peers_.at(who.node).meter : nullptr;
}

void tcp_plane::ended(incoming& from, error why) {
  auto stranger = std::ranges::find(strangers_, &from, &incoming_ptr::get);
  if (stranger != strangers_.end()) {
    log(log_level::warning, "a connection to tensor port " + std::to_string(port_) + " from " +
                              from.address() + " is closed: " + why.text);
    strangers_.erase(stranger);
    return;
  }
  auto who = from.hello().from;
  forget(from);
  log(log_level::debug, "the connection from " + from.address() + " has ended: " + why.text);
  if (is_member(who)) break_peer(who.node, std::move(why));
}

void tcp_plane::left(incoming& from) {
  log(log_level::debug, from.address() + " said farewell");
  forget(from);
}

void tcp_plane::forget(incoming& which) {
  auto found = incoming_.find({which.hello().from.node, which.hello().direction});
  if (found != incoming_.end() && found->second.get() == &which) incoming_.erase(found);
}

const core::member* tcp_plane::member(node_id node) const {
  auto found = peers_.find(node);
  return found == peers_.end() ? nullptr : &found->second.who;
}

bool tcp_plane::is_member(const core::sender& who) const {
  auto* known = member(who.node);
  return known && known->who == who;
}

std::size_t tcp_plane::parked_count() const {
  return static_cast<std::size_t>(std::ranges::count_if(incoming_, [this](auto& entry) {
    return entry.second && !is_member(entry.second->hello().from);
  }));
}

void tcp_plane::log(log_level level, std::string text) const {
  if (options_.log) options_.log(level, std::move(text));
}

}  // namespace shoal::transport
