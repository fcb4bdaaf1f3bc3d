#include "base/rng.hpp"

#include <cmath>
#include <numbers>

#include "base/assert.hpp"

namespace shoal {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t multiplier_0 = 0xD2511F53, multiplier_1 = 0xCD9E8D57;
  constexpr std::uint32_t weyl_0 = 0x9E3779B9, weyl_1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    auto product_0 = multiplier_0 * counter[0], product_1 = multiplier_1 * counter[2];
    counter = {static_cast<std::uint32_t>(product_1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product_1),
               static_cast<std::uint32_t>(product_0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product_0)};
    key[0] += weyl_0;
    key[1] += weyl_1;
  }
  return counter;
}

namespace {

/// The finalizer of SplitMix64 (Steele et al., OOPSLA'14): every input bit moves every output bit.
std::uint64_t scramble(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9u;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// A word of 32 random bits as a float in [0, 1) with 24 of them.
float unit_float(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1.0p-24f; }

}  // namespace

std::uint64_t mix_key(std::span<const std::uint64_t> words, std::string_view text) {
  std::uint64_t key = 0x9E3779B97F4A7C15u;
  for (auto word : words) key = scramble(key ^ word) + 0x9E3779B97F4A7C15u;
  for (unsigned char c : text) key = scramble(key ^ c) + 0x9E3779B97F4A7C15u;
  return scramble(key ^ text.size());
}

std::array<std::uint32_t, 4> rng::block() {
  auto at = position_++;
  return philox4x32({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at >> 32), 0, 0},
                    {static_cast<std::uint32_t>(key_), static_cast<std::uint32_t>(key_ >> 32)});
}

std::uint64_t rng::next() {
  auto words = block();
  return words[0] | std::uint64_t{words[1]} << 32;
}

std::uint64_t rng::below(std::uint64_t bound) {
  SHOAL_ASSERT(bound > 0);
  // Draws under this threshold would make the small remainders likelier (Lemire 2019, section 2).
  auto threshold = (0 - bound) % bound;
  for (;;)
    if (auto word = next(); word >= threshold) return word % bound;
}

double rng::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

void rng::fill_uniform(std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); i += 4) {
    auto words = block();
    for (std::size_t k = 0; k < 4 && i + k < out.size(); ++k) out[i + k] = unit_float(words[k]);
  }
}

void rng::fill_normal(std::span<float> out, float deviation) {
  for (std::size_t i = 0; i < out.size(); i += 4) {
    auto words = block();
    for (std::size_t k = 0; k < 4 && i + k < out.size(); k += 2) {
      // 1 - u is in (0, 1], so the logarithm is finite.
      double radius = std::sqrt(-2.0 * std::log(1.0 - unit_float(words[k])));
      double angle = 2.0 * std::numbers::pi * unit_float(words[k + 1]);
      out[i + k] = static_cast<float>(deviation * radius * std::cos(angle));
      if (i + k + 1 < out.size())
        out[i + k + 1] = static_cast<float>(deviation * radius * std::sin(angle));
    }
  }
}

void rng::fill_keep_mask(std::span<float> out, float keep) {
  SHOAL_ASSERT(keep > 0 && keep <= 1);
  auto scale = 1 / keep;
  for (std::size_t i = 0; i < out.size(); i += 4) {
    auto words = block();
    for (std::size_t k = 0; k < 4 && i + k < out.size(); ++k)
      out[i + k] = unit_float(words[k]) < keep ? scale : 0;
  }
}

}  // namespace shoal
