#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "actors/interfaces.hpp"

namespace shoal::actors {

system_config::system_config() {
  load<caf::io::middleman>();
  add_message_types<caf::id_block::shoal>();
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-threads", std::size_t{2});
  set("scheduler.max-throughput", std::size_t{100});
  // Ours notice a silent peer sooner; this one only clears a half-open connection away. Shorter
  // ticks cut healthy handshakes.
  set("middleman.heartbeat-interval", std::size_t{2000});
  set("middleman.connection-timeout", std::size_t{20000});
  set("middleman.workers", std::size_t{1});
  set("middleman.app-identifiers",
      std::vector<std::string>{"shoal/" + std::to_string(core::protocol_version)});
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
  auto failed = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
                ::listen(fd, 1) != 0;
  auto reason = errno;
  ::close(fd);
  if (!failed) return {};
  auto code = reason == EADDRINUSE      ? errc::port_in_use
              : reason == EACCES        ? errc::no_permission
              : reason == EADDRNOTAVAIL ? errc::config
                                        : errc::io;
  return {code, "cannot listen on " + host + ":" + std::to_string(port) + ": " + std::strerror(reason) +
                  (code == errc::port_in_use ? "; stop the other program, or set another port" : "")};
}

}  // namespace

result<std::uint16_t> explain_publish(const caf::expected<std::uint16_t>& published,
                                      const std::string& host, std::uint16_t port) {
  if (published) return *published;
  if (auto why = try_bind(host, port); !why) return std::move(why).error();
  return {errc::io, "cannot listen on " + host + ":" + std::to_string(port)};
}

}  // namespace shoal::actors
