#pragma once
// The bytes with which a connection begins: the dialer says who it is, the other end answers.
//
//   hello, 64 bytes:      0  magic "SHLO"    4  version u32    8  job u64
//                        16  from node u64  24  from incarnation u64
//                        32  to node u64    40  to incarnation u64
//                        48  direction class u8, 7 zero bytes
//                        56  XXH3-64 of bytes 0..56
//   answer, 512 bytes:    0  magic "SHLA"    4  version u32
//                         8  0: accepted, else errc + 1, u8     9  zero u8
//                        10  length of the reason u16          12  zero u32
//                        16  the reason in words, up to 488 bytes, rest zero
//                       504  XXH3-64 of bytes 0..504
//
// Magic and version come first, and are judged before the rest is read, so that a stranger gets
// its answer at once. After it has accepted, the receiver may send one more answer, with the reason
// for which it closes the connection; nothing else ever flows against the direction of a
// connection.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "core/messages.hpp"
#include "transport/frame.hpp"

namespace shoal::transport {

constexpr std::size_t hello_size = 64;
constexpr std::size_t hello_prefix_size = 8;  ///< magic and version
constexpr std::size_t answer_size = 512;
constexpr std::size_t answer_reason_size_max = 488;

using hello_bytes = std::array<std::byte, hello_size>;
using answer_bytes = std::array<std::byte, answer_size>;

/// What a dialer says of itself and of whom it wants.
struct greeting {
  std::uint64_t job = 0;  ///< digest of the job file
  core::sender from;
  core::sender to;
  direction_class direction = direction_class::pipeline;
  friend bool operator==(const greeting&, const greeting&) = default;
};

hello_bytes encode(const greeting& g);

/// Whether bytes can be the beginning of a hello of our version. `errc::protocol`.
result<void> check_prefix(std::span<const std::byte, hello_prefix_size> bytes);

/// `errc::protocol` for wrong magic, version or fields, `errc::damaged` for a wrong hash.
result<greeting> decode_hello(std::span<const std::byte, hello_size> bytes);

answer_bytes encode_acceptance();
/// A longer reason is cut.
answer_bytes encode_refusal(const error& why);

/// Whether bytes are the beginning of an answer, rather than of a frame.
bool begins_answer(std::span<const std::byte> bytes);

/// Accepted, or the error that the other end gave, or `errc::protocol` / `errc::damaged` for bytes
/// that are no answer.
result<void> decode_answer(std::span<const std::byte, answer_size> bytes);

}  // namespace shoal::transport
