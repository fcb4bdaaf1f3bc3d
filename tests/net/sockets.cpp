// Plain sockets of 127.0.0.1: to take a port away, and to talk nonsense to one.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>

#include "net/harness.hpp"

namespace shoal::test {

namespace {

sockaddr_in local(std::uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(port);
  return at;
}

}  // namespace

socket_to socket_to::listen() {
  socket_to s(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(s.open());
  auto at = local(0);
  REQUIRE(::bind(s.fd_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
  REQUIRE(::listen(s.fd_, 8) == 0);
  return s;
}

socket_to socket_to::connect(std::uint16_t port) {
  socket_to s(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto at = local(port);
  if (::connect(s.fd_, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0)
    ::close(std::exchange(s.fd_, -1));
  return s;
}

socket_to::~socket_to() {
  if (fd_ >= 0) ::close(fd_);
}

std::uint16_t socket_to::port() const {
  sockaddr_in at{};
  socklen_t size = sizeof at;
  REQUIRE(::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size) == 0);
  return ntohs(at.sin_port);
}

void socket_to::send(const std::string& bytes) {
  // The other side may close at the first byte that it does not like: no error of the test.
  for (std::size_t sent = 0; sent < bytes.size();) {
    auto n = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return;
    sent += static_cast<std::size_t>(n);
  }
}

bool socket_to::closed_by_peer(std::chrono::milliseconds deadline) {
  auto until = std::chrono::steady_clock::now() + deadline;
  std::array<char, 4096> ignored;
  for (;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      until - std::chrono::steady_clock::now());
    pollfd watched{fd_, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&watched, 1, static_cast<int>(left.count())) <= 0) return false;
    if (::recv(fd_, ignored.data(), ignored.size(), 0) <= 0) return true;
  }
}

std::uint16_t free_port() { return socket_to::listen().port(); }

}  // namespace shoal::test
