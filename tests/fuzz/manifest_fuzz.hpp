#pragma once
// What must hold for any text given to the reader of manifests; see safetensors_fuzz.hpp.

#include <cstdlib>
#include <string_view>

#include "storage/manifest_codec.hpp"

namespace shoal::fuzz {

/// Reads `text`; aborts when the reader breaks a promise. Returns whether it was a manifest.
inline bool manifest_one(std::string_view text) {
  auto must = [](bool holds) {
    if (!holds) std::abort();
  };
  const auto decoded = storage::decode_manifest(text);
  if (!decoded) return false;
  must(core::check(*decoded).has_value());
  for (auto& part : decoded->parts)
    must(part.file.find('/') == std::string::npos && !part.file.starts_with('.'));
  const auto again = storage::decode_manifest(storage::encode_manifest(*decoded));
  must(again.has_value() && *again == *decoded);
  return true;
}

}  // namespace shoal::fuzz
