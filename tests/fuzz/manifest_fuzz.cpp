// As safetensors_fuzz.cpp.
#include "fuzz/manifest_fuzz.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shoal::fuzz::manifest_one({reinterpret_cast<const char*>(data), size});
  return 0;
}
