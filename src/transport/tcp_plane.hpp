#pragma once
// The tensor plane over TCP: how nodes on a network, or processes on one machine, exchange tensors.
//
//               node A                                      node B
//   send() --> io thread == pipeline connection (A dialed) ==> io thread --> tensor_sink
//                        == bulk connection (A dialed) ======>
//              io thread <== two more, which B dialed ======== io thread <-- send()
//
// One thread a plane does all socket work; payloads go from tensor memory to the socket and from
// the socket to tensor memory, hashed on both ends. See frame.hpp and hello.hpp for the bytes,
// README.md for what happens when.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "core/job.hpp"
#include "core/ports.hpp"

namespace shoal::transport {

enum class log_level : std::uint8_t { debug, info, warning };

struct tcp_options {
  /// Where to listen, a literal address; port 0 takes any free one.
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  /// Digest of the job file: peers with another are refused.
  std::uint64_t job = 0;
  /// A longer frame is refused, by sender and receiver.
  std::uint64_t frame_bytes_max = 1ull << 30;
  /// Payload waiting to be sent to one peer; beyond it the peer is `broken`. A guard against a peer
  /// that reads nothing: in a healthy view the schedule keeps far below.
  std::uint64_t queue_bytes_max = 4ull << 30;
  /// Of every link to a peer; see link_clock.hpp for what is emulated and what not.
  core::emulate_options emulate;
  /// For one attempt to connect and to greet; `open` tries again until its own deadline.
  std::chrono::nanoseconds connect_timeout = std::chrono::seconds(2);
  /// A connection that has not said hello by then is closed.
  std::chrono::nanoseconds hello_timeout = std::chrono::seconds(5);
  /// A greeted connection from a node that is not in the open view is closed after that time.
  std::chrono::nanoseconds park_timeout = std::chrono::seconds(120);
  /// Connections that have not said hello; with one more the oldest is closed.
  std::size_t stranger_count_max = 256;
  /// Connections from nodes not in the open view; one more is refused.
  std::size_t parked_count_max = 4096;
  /// Called from the io thread with whole sentences: strangers, refusals (warning), connections
  /// that come and go (debug). May be empty.
  std::function<void(log_level, std::string)> log;
};

/// A port that is listening already, before there is a plane: a node must name its port in order to
/// be told the job that the plane's options come from. Peers that dial meanwhile wait in the
/// kernel's backlog. Closes the port unless a plane took it.
class listening_port {
public:
  listening_port(int fd, std::string host, std::uint16_t port)
    : fd_(fd), host_(std::move(host)), port_(port) {}
  listening_port(listening_port&& other) noexcept;
  listening_port& operator=(listening_port&& other) noexcept;
  ~listening_port();

  const std::string& host() const { return host_; }
  std::uint16_t port() const { return port_; }
  /// The socket, which is the caller's from now on.
  int release();

private:
  int fd_ = -1;
  std::string host_;
  std::uint16_t port_ = 0;
};

/// Listens on a literal address; port 0 takes any free one. `errc::port_in_use` (names host and
/// port), `errc::no_permission`, `errc::config` when the host is no address of this machine.
/// Whether an address other than loopback is wise is the caller's decision.
result<listening_port> listen_tcp(const std::string& host, std::uint16_t port);

/// A plane that listens as the options say; errors as `listen_tcp`. Its destructor closes all
/// connections without farewell, so that peers that still count on this node see it break; it waits
/// for a running call to the sink and makes none after.
result<std::unique_ptr<core::tensor_plane>> make_tcp_plane(tcp_options options);

/// The same on a port that listens already; `options.host` and `.port` are not used.
std::unique_ptr<core::tensor_plane> make_tcp_plane(tcp_options options, listening_port at);

}  // namespace shoal::transport
