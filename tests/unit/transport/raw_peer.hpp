#pragma once
// A peer that speaks to a tensor port byte by byte, rightly or wrongly.

#include <optional>
#include <span>
#include <string_view>

#include "transport/hello.hpp"

namespace shoal::transport::testing {

/// A blocking socket on loopback, every read with a deadline. Closed with it.
class raw_peer {
public:
  /// Connects.
  explicit raw_peer(std::uint16_t port);
  /// Takes over an accepted socket.
  static raw_peer of(int fd) { return raw_peer(fd, 0); }
  raw_peer(raw_peer&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~raw_peer();

  /// Whether all could be written.
  bool write(std::span<const std::byte> bytes);
  bool write(std::string_view text) { return write(std::as_bytes(std::span(text))); }
  /// Reads exactly so many; false when the connection ended before.
  bool read(std::span<std::byte> bytes);
  /// Whether the other end has closed, with nothing more to read.
  bool at_end();

  /// Reads an answer: accepted, or the error in it; nothing when the connection ended without one.
  std::optional<result<void>> read_answer();
  /// Greets and reads the answer.
  std::optional<result<void>> greet(const greeting& hello);

private:
  raw_peer(int fd, int) : fd_(fd) {}
  int fd_;
};

/// A port that listens and does nothing by itself.
class raw_listener {
public:
  raw_listener();
  ~raw_listener();
  std::uint16_t port() const { return port_; }
  raw_peer accept();

private:
  int fd_;
  std::uint16_t port_ = 0;
};

}  // namespace shoal::transport::testing
