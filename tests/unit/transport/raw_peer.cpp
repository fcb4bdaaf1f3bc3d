#include "unit/transport/raw_peer.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace shoal::transport::testing {

namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return at;
}

}  // namespace

raw_peer::raw_peer(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  auto at = loopback(port);
  REQUIRE(::connect(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
  timeval patience{20, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

raw_peer::~raw_peer() {
  if (fd_ >= 0) ::close(fd_);
}

bool raw_peer::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

bool raw_peer::read(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    auto n = ::recv(fd_, bytes.data(), bytes.size(), 0);
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

bool raw_peer::at_end() {
  std::byte one;
  auto n = ::recv(fd_, &one, 1, 0);
  return n == 0 || (n < 0 && errno == ECONNRESET);
}

std::optional<result<void>> raw_peer::read_answer() {
  answer_bytes bytes;
  if (!read(bytes)) return {};
  return decode_answer(bytes);
}

std::optional<result<void>> raw_peer::greet(const greeting& hello) {
  if (!write(encode(hello))) return {};
  return read_answer();
}

raw_listener::raw_listener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  auto at = loopback(0);
  REQUIRE(::bind(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
  REQUIRE(::listen(fd_, 16) == 0);
  socklen_t size = sizeof at;
  ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size);
  port_ = ntohs(at.sin_port);
}

raw_listener::~raw_listener() { ::close(fd_); }

raw_peer raw_listener::accept() {
  auto fd = ::accept(fd_, nullptr, nullptr);
  REQUIRE(fd >= 0);
  return raw_peer::of(fd);
}

}  // namespace shoal::transport::testing
