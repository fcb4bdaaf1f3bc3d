#pragma once
// A manifest as JSON for people and machines, with a checksum of its own.
//
//   {"format": "shoal-checkpoint", "version": 1, "step": 120, "job": "training.seed = 1\n...",
//    "weights_digest": "16 hex digits",
//    "parts": [{"block": 0, "file": "block-000.safetensors", "bytes": 4242, "hash": "...",
//               "digest": "..."}, ...],
//    "checksum": "XXH3-64 of the rest: without this key, keys sorted, no spaces"}

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "core/checkpoint/manifest.hpp"

namespace shoal::storage {

constexpr std::uint64_t manifest_bytes_max = 4u << 20;

/// The text of a manifest's file.
std::string encode_manifest(const core::manifest& m);

/// A manifest that passed its checksum and `core::check`. `errc::damaged`; `errc::foreign` for one
/// of another version.
result<core::manifest> decode_manifest(std::string_view text);

/// That a checkpoint belongs to the job with the text `ours` (lines "key = value").
/// `errc::foreign` names the first key that differs and both values.
result<void> check_job(const core::manifest& m, std::string_view ours);

}  // namespace shoal::storage
