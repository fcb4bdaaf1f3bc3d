#pragma once
// The bytes of a frame: what travels on a connection once both ends have greeted (hello.hpp).
//
//   | header, 112 bytes | payload, `bytes` bytes | XXH3-64 of the payload, 8 bytes |
//
//   header, little endian:
//     0  magic "SHLF"     4  version u16     6  kind u8     7  scalar u8
//     8  view u64        16  step u64
//    24  block u32       28  micro_batch u32  32  part u32   36  dimensions u32
//    40  shape i64[6], unused entries zero
//    88  bytes u64, of the payload           96  zero u64
//   104  XXH3-64 of bytes 0..104
//
// The payload's hash follows the payload, so that both ends hash piece by piece while the bytes are
// in the cache, and a long tensor neither waits for its hash nor holds up the io thread. A
// *farewell* has the size and the hash of a header and the magic "SHLB": the sender closes this
// connection because it has moved to another view, not because it died.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "core/ports.hpp"

namespace shoal::transport {

constexpr std::size_t frame_header_size = 112;
constexpr std::size_t frame_trailer_size = 8;

using frame_header_bytes = std::array<std::byte, frame_header_size>;

/// Frames between two nodes keep their order within a class; each class has its own connection, so
/// that a long sum never stands before an activation.
enum class direction_class : std::uint8_t { pipeline, bulk };
constexpr std::size_t direction_class_count = 2;

/// Activation, gradient and validation are `pipeline`, the rest `bulk`.
direction_class class_of(core::frame_kind kind);

/// "activation", "pipeline", "f32".
std::string_view to_string(core::frame_kind kind);
std::string_view to_string(direction_class direction);
std::string_view to_string(core::scalar_kind scalar);

/// For messages: "activation of block 3, micro-batch 5, part 0 (view 2, step 7)".
std::string name_of(const core::frame_header& header);

/// Whether a header keeps the rules that both ends check: known kind and scalar, at most six
/// dimensions, none negative, `bytes` = product * size, at most `frame_bytes_max`. A state_request
/// has no payload whatever its shape. `errc::protocol`, with what was expected and what was found.
result<void> check(const core::frame_header& header, std::uint64_t frame_bytes_max);

/// The bytes of a header that keeps the rules.
frame_header_bytes encode(const core::frame_header& header);

/// The header in `bytes`. `errc::protocol` for wrong magic, version or fields, `errc::damaged` for
/// a wrong hash. Any single flipped bit is found.
result<core::frame_header> decode_frame(std::span<const std::byte, frame_header_size> bytes,
                                        std::uint64_t frame_bytes_max);

frame_header_bytes farewell();
bool is_farewell(std::span<const std::byte, frame_header_size> bytes);

}  // namespace shoal::transport
