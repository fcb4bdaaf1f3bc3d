#include "transport/tcp_plane.hpp"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "transport/tcp/plane.hpp"

namespace shoal::transport {

listening_port::listening_port(listening_port&& other) noexcept
  : fd_(std::exchange(other.fd_, -1)), host_(std::move(other.host_)), port_(other.port_) {}

listening_port& listening_port::operator=(listening_port&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(host_, other.host_);
  std::swap(port_, other.port_);
  return *this;
}

listening_port::~listening_port() {
  if (fd_ >= 0) ::close(fd_);
}

int listening_port::release() { return std::exchange(fd_, -1); }

result<listening_port> listen_tcp(const std::string& host, std::uint16_t port) {
  TRY(auto at, endpoint_of(host, port));
  asio::io_context io;
  tcp::acceptor acceptor(io);
  asio::error_code ec;
  auto failed = [&](const char* what) -> error {
    auto where = text_of(at);
    if (ec == asio::error::address_in_use)
      return {errc::port_in_use,
              where + " is taken by another program; choose another port, or 0 for any free one"};
    if (ec == asio::error::access_denied)
      return {errc::no_permission,
              "no permission to listen on " + where + "; choose a port above 1023"};
    if (ec.value() == EADDRNOTAVAIL)
      return {errc::config,
              where + " is not an address of this machine; choose one that is, such as 127.0.0.1"};
    return {errc::io, std::string("cannot ") + what + " on " + where + ": " + ec.message()};
  };
  if (acceptor.open(at.protocol(), ec); ec) return failed("make a socket to listen");
  close_on_exec(acceptor.native_handle());
  // Lets a restarted node have its port back while old connections linger; two listeners still
  // exclude one another.
  acceptor.set_option(asio::socket_base::reuse_address(true), ec);
  if (acceptor.bind(at, ec); ec) return failed("bind");
  if (acceptor.listen(asio::socket_base::max_listen_connections, ec); ec) return failed("listen");
  auto bound = acceptor.local_endpoint(ec);
  if (ec) return failed("listen");
  return listening_port(acceptor.release(), host, bound.port());
}

std::unique_ptr<core::tensor_plane> make_tcp_plane(tcp_options options, listening_port at) {
  return std::make_unique<tcp_plane>(std::move(options), std::move(at));
}

result<std::unique_ptr<core::tensor_plane>> make_tcp_plane(tcp_options options) {
  TRY(auto at, listen_tcp(options.host, options.port));
  return make_tcp_plane(std::move(options), std::move(at));
}

}  // namespace shoal::transport
