#pragma once
// What every TCP connection of the plane has in common: addresses as text, options, errors as ours.

#include <asio.hpp>
#include <string>

#include "base/result.hpp"

namespace shoal::transport {

using tcp = asio::ip::tcp;

/// "127.0.0.1:4711", "[::1]:4711".
std::string text_of(const tcp::endpoint& at);

/// `errc::config` when `host` is not a literal address.
result<tcp::endpoint> endpoint_of(const std::string& host, std::uint16_t port);

/// No delay, keep-alive (a machine that lost power is noticed within 25 s even when nothing is
/// sent), not inherited by child processes. Buffer sizes are left to the kernel: setting them turns
/// its tuning off and is capped far below what it chooses by itself. Failures are ignored: a socket
/// on which this fails is broken, and the next read says so.
void tune(tcp::socket& socket);

/// Not inherited by child processes, which would keep the connection open after our death.
void close_on_exec(int fd);

/// Closes without complaint.
void close(tcp::socket& socket);

/// The end of a connection in our words: "closed by the other end", "reset by the other end", or
/// the system's text. Always `errc::unreachable`.
error error_of(const asio::error_code& ec, const std::string& where);

}  // namespace shoal::transport
