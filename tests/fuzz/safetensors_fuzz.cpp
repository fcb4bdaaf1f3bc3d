// clang++ -fsanitize=fuzzer,address,undefined over this file, the property beside it, and
// shoal_storage; a sound file of a checkpoint makes a good corpus.
#include "fuzz/safetensors_fuzz.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shoal::fuzz::safetensors_one(std::as_bytes(std::span(data, size)));
  return 0;
}
