#pragma once
// A block's state as a safetensors file: what other tools read too, checked harder than they do.
//
//   0        8                      8+N                        end
//   +--------+----------------------+--------+--------+--- - ---+
//   | N, LE  | JSON, spaces to 8    | tensor | tensor |         |
//   +--------+----------------------+--------+--------+--- - ---+
//
//   JSON: {"__metadata__": {"format": "pt", "shoal.version": "1", "shoal.block": "0",
//                           "shoal.step": "120", "shoal.digest": "16 hex digits"},
//          "h.0.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
//
// Tensors lie in the order of the block's state, without a gap, up to the last byte. The same state
// gives the same bytes. The format has no checksum: that stands in the manifest.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/ports.hpp"

namespace shoal::storage {

/// Limits on what a header may claim; each far above what a block needs.
constexpr std::uint64_t header_bytes_max = 16u << 20;
constexpr std::size_t tensor_count_max = 65'536;
constexpr std::size_t name_bytes_max = 1'024;

/// A tensor as the header describes it; bytes [begin, end) of the data that follow the header.
struct tensor_entry {
  std::string name;
  core::scalar_kind scalar = core::scalar_kind::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// A checked header.
struct safetensors_header {
  std::map<std::string, std::string> metadata;
  std::vector<tensor_entry> tensors;  ///< in order of their bytes
  std::uint64_t data_begin = 0;       ///< where the data starts in the file
};

/// Checks every rule of the format on a whole file: sizes that fit to the byte, no gap, overlap,
/// duplicate, empty tensor, unknown type or key. `errc::damaged` says which rule and tensor.
result<safetensors_header> read_header(std::span<const std::byte> file);

/// The first bytes of a file, up to the tensors' own: length, JSON, padding. `errc::internal` for a
/// state that cannot be written: a name twice or too long, an empty tensor, a size that is not
/// that of the shape.
result<std::string> encode_header(const core::block_state& state, step_id step);

/// A block from a file's bytes, and the step of its weights.
struct decoded_block {
  core::block_state state;  ///< tensors share the memory of `file`, each aligned to its type
  step_id step;
};
/// `errc::damaged` when a rule is broken or the parameters' digest is not the one in the file,
/// `errc::foreign` for a sound safetensors file that is not one of ours.
result<decoded_block> decode_block(const core::shared_bytes& file);

/// XXH3-64 over the bytes of the parameters, in order: all tensors but the optimizer's, whose names
/// end in ".exp_avg", ".exp_avg_sq" or ".momentum". The engine's digest of a block is the same.
std::uint64_t parameter_digest(const core::block_state& state);

}  // namespace shoal::storage
