#include "transport/tcp/round_trip.hpp"

// The kernel's own header: the C library's tcp_info ends before the least round trip. The two
// cannot stand in one file, so this one is built without the precompiled header.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

namespace shoal::transport {

std::chrono::nanoseconds least_round_trip(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  // An older kernel tells less.
  if (size < offsetof(tcp_info, tcpi_min_rtt) + sizeof info.tcpi_min_rtt) return {};
  constexpr auto unknown = ~std::uint32_t{0};
  if (info.tcpi_min_rtt == unknown) return {};
  return std::chrono::microseconds(info.tcpi_min_rtt);
}

}  // namespace shoal::transport
