#include "transport/tcp/socket.hpp"

#include <fcntl.h>
#include <netinet/tcp.h>

namespace shoal::transport {

std::string text_of(const tcp::endpoint& at) {
  auto host = at.address().to_string();
  return (at.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(at.port());
}

result<tcp::endpoint> endpoint_of(const std::string& host, std::uint16_t port) {
  asio::error_code ec;
  auto address = asio::ip::make_address(host, ec);
  if (ec)
    return error{errc::config,
                 "\"" + host + "\" is not a literal IP address; give one such as 127.0.0.1 or ::1"};
  return tcp::endpoint(address, port);
}

void close_on_exec(int fd) { ::fcntl(fd, F_SETFD, FD_CLOEXEC); }

void tune(tcp::socket& socket) {
  using idle_s = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
  using interval_s = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPINTVL>;
  using count = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPCNT>;
  asio::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  socket.set_option(idle_s(10), ignored);
  socket.set_option(interval_s(5), ignored);
  socket.set_option(count(3), ignored);
  close_on_exec(socket.native_handle());
}

void close(tcp::socket& socket) {
  asio::error_code ignored;
  socket.close(ignored);
}

error error_of(const asio::error_code& ec, const std::string& where) {
  if (ec == asio::error::eof) return {errc::unreachable, where + " was closed by the other end"};
  if (ec == asio::error::connection_reset || ec == asio::error::broken_pipe)
    return {errc::unreachable, where + " was reset by the other end"};
  return {errc::unreachable, where + ": " + ec.message()};
}

}  // namespace shoal::transport
