#pragma once
// What must hold for any bytes given to the reader of safetensors files. Run by the unit tests on
// bytes from a seed, and by libFuzzer (safetensors_fuzz.cpp) on bytes that it invents.

#include <cstdlib>
#include <cstring>
#include <span>

#include "storage/durable_file.hpp"
#include "storage/safetensors.hpp"

namespace shoal::fuzz {

/// Reads `bytes`; aborts when the reader breaks a promise. Returns whether they were a block.
inline bool safetensors_one(std::span<const std::byte> bytes) {
  auto must = [](bool holds) {
    if (!holds) std::abort();
  };
  auto file = *storage::allocate_bytes(bytes.size());
  if (!bytes.empty()) std::memcpy(file.data, bytes.data(), bytes.size());
  const auto header = storage::read_header(std::span<const std::byte>(file.data, file.size));
  if (header) {
    std::uint64_t reached = 0;
    for (auto& tensor : header->tensors) {
      must(tensor.begin == reached && tensor.end > tensor.begin);
      reached = tensor.end;
    }
    must(header->data_begin + reached == file.size);
  }
  const auto decoded = storage::decode_block(file);
  if (!decoded) return false;
  must(header.has_value());
  must(storage::parameter_digest(decoded->state) == decoded->state.digest);
  // What was read can be written, and reads the same.
  auto text = *storage::encode_header(decoded->state, decoded->step);
  for (auto& tensor : decoded->state.tensors)
    text.append(reinterpret_cast<const char*>(tensor.bytes.data), tensor.bytes.size);
  auto again = *storage::allocate_bytes(text.size());
  std::memcpy(again.data, text.data(), text.size());
  const auto second = storage::decode_block(again);
  must(second.has_value() && second->step == decoded->step);
  must(second->state.tensors.size() == decoded->state.tensors.size());
  must(second->state.digest == decoded->state.digest);
  return true;
}

}  // namespace shoal::fuzz
