#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <future>
#include <thread>

#include "actors/interfaces.hpp"

namespace shoal::actors {

using namespace std::chrono_literals;

system_config::system_config() {
  load<caf::io::middleman>();
  add_message_types<caf::id_block::shoal>();
  set("scheduler.policy", caf::atom("sharing"));
  // One may be held up by the supervisor's ledger; messages from the network need another.
  set("scheduler.max-threads", std::size_t{3});
  set("scheduler.max-throughput", std::size_t{100});
  // Ours notice a silent peer sooner; this one only clears a half-open connection away. Shorter
  // ticks cut healthy handshakes.
  set("middleman.heartbeat-interval", caf::timespan{1s});
  set("middleman.connection-timeout", caf::timespan{10s});
  set("middleman.workers", std::size_t{1});
  set("middleman.app-identifiers",
      std::vector<std::string>{"shoal/" + std::to_string(core::protocol_version)});
}

// -- systems --------------------------------------------------------------------------------------

bounded_system::bounded_system() : parts_(std::make_unique<parts>()) {
  parts_->system.emplace(parts_->config);
  leave();
}

bounded_system::~bounded_system() { end(2s); }

bool bounded_system::end(std::chrono::milliseconds at_most) {
  if (!parts_) return true;
  leave();
  // CAF's destructor waits for actors without a deadline, so somebody else waits for it.
  std::promise<void> ended;
  auto end = ended.get_future();
  std::thread destroyer([p = std::move(parts_), e = std::move(ended)]() mutable {
    p.reset();
    e.set_value();
  });
  auto in_time = end.wait_for(at_most) == std::future_status::ready;
  if (in_time)
    destroyer.join();
  else
    destroyer.detach();
  return in_time;
}

// -- errors ---------------------------------------------------------------------------------------

error explain_dial(const caf::actor_system& system, const caf::error& why, const std::string& at) {
  if (why == caf::sec::incompatible_application_ids)
    return {errc::refused, "the program at " + at +
                             " speaks another version of our protocol; use the "
                             "same version of shoal on all nodes"};
  if (why == caf::sec::request_timeout)
    return {errc::timeout,
            "somebody listens at " + at + " but does not answer as one of ours would"};
  if (why == caf::sec::cannot_connect_to_node)
    return {errc::unreachable, "nobody listens at " + at};
  return {errc::unreachable, "no connection to " + at + ": " + system.render(why)};
}

namespace {

/// CAF says only "cannot open port": asks the system what is wrong with it.
result<void> try_bind(const std::string& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1)
    return {errc::config, "'" + host + "' is not a literal IPv4 address to listen on"};
  auto fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int yes = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  auto failed =
    ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(fd, 1) != 0;
  auto reason = errno;
  ::close(fd);
  if (!failed) return {};
  auto code = reason == EADDRINUSE      ? errc::port_in_use
              : reason == EACCES        ? errc::no_permission
              : reason == EADDRNOTAVAIL ? errc::config
                                        : errc::io;
  return {
    code,
    "cannot listen on " + host + ":" + std::to_string(port) + ": " + std::strerror(reason) +
      (code == errc::port_in_use ? "; stop the other program, or set another network.control_port"
                                 : "")};
}

}  // namespace

result<std::uint16_t> explain_publish(const caf::expected<std::uint16_t>& published,
                                      const std::string& host, std::uint16_t port) {
  if (published) return *published;
  if (auto why = try_bind(host, port); !why) return std::move(why).error();
  return {errc::io, "cannot listen on " + host + ":" + std::to_string(port)};
}

}  // namespace shoal::actors
