#include <algorithm>

#include "core/plan/grid_search.hpp"

// A division that leaves layers over must not build a smaller model in silence
// (NVIDIA/Megatron-LM#468 trained 64 of 80 layers).

namespace shoal::core {

result<std::vector<index_range>> cut_equally(std::uint32_t layers, std::uint32_t stages,
                                             std::uint32_t chunks) {
  if (layers == 0 || stages == 0 || chunks == 0)
    return {errc::config, "layers, stages and chunks must be at least 1; they are " +
                            std::to_string(layers) + ", " + std::to_string(stages) + " and " +
                            std::to_string(chunks)};
  auto parts = std::uint64_t{stages} * chunks;
  if (layers % parts == 0) {
    auto each = static_cast<std::uint32_t>(layers / parts);
    std::vector<index_range> cuts;
    for (std::uint32_t begin = 0; begin < layers; begin += each)
      cuts.push_back({begin, begin + each});
    return cuts;
  }
  auto text = std::to_string(layers) + " layers cannot be cut into " + std::to_string(stages) +
              " stages of " + std::to_string(chunks) + (chunks == 1 ? " chunk" : " chunks") +
              " of equal size: " + std::to_string(layers % parts) +
              " layers would be left out. Nearest that is legal: ";
  auto below = layers / parts * parts;
  if (below > 0) text += std::to_string(below) + " or ";
  text += std::to_string(below + parts) + " layers";
  // The nearest number of chunks, and of stages, that divides what there is.
  auto nearest = [&](std::uint32_t from, std::uint32_t other) -> std::uint32_t {
    for (std::uint32_t off = 1; off <= layers; ++off) {
      if (from > off && layers % (std::uint64_t{from - off} * other) == 0) return from - off;
      if (layers % (std::uint64_t{from} + off) == 0 &&
          layers % ((std::uint64_t{from} + off) * other) == 0)
        return from + off;
    }
    return 0;
  };
  if (auto c = nearest(chunks, stages); c != 0) text += ", chunks = " + std::to_string(c);
  if (auto s = nearest(stages, chunks); s != 0) text += ", stages = " + std::to_string(s);
  return {errc::config, text + "; or cuts of unequal size"};
}

}  // namespace shoal::core
