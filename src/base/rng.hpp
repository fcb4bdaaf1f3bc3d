#pragma once
// Random numbers without state: a pure function of (key, position).
//
// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11,
// section 3.3). A running generator would make a number depend on how many were drawn before it,
// and so on the layout; a counter-based one gives every (seed, step, micro-batch, block) its own
// stream, which recompute, another node, or another process can draw again.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace shoal {

/// Four 32-bit words for one counter and key: the function of the paper, ten rounds.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

/// Mixes words and text into a 64-bit key; order matters. Stable for ever: checkpoints and same
/// bits depend on it.
std::uint64_t mix_key(std::span<const std::uint64_t> words, std::string_view text = {});

/// A stream of random numbers addressed by position. Copyable, two words long; each draw moves the
/// position by what it took, rounded up to whole Philox blocks of four words.
class rng {
public:
  explicit rng(std::uint64_t key) : key_(key) {}
  /// The stream named by `words` and `text`.
  static rng of(std::span<const std::uint64_t> words, std::string_view text = {}) {
    return rng(mix_key(words, text));
  }

  /// One uniform 64-bit word.
  std::uint64_t next();
  /// Uniform in [0, bound) without bias; `bound` > 0.
  std::uint64_t below(std::uint64_t bound);
  /// Uniform in [0, 1), 53 bits.
  double uniform();

  /// Fills with uniform numbers in [0, 1), 24 bits each.
  void fill_uniform(std::span<float> out);
  /// Fills with normal numbers (Box-Muller), mean 0, the given standard deviation.
  void fill_normal(std::span<float> out, float deviation);
  /// Fills with 1/keep with probability `keep`, else 0: a dropout mask (inverted dropout).
  void fill_keep_mask(std::span<float> out, float keep);

private:
  std::array<std::uint32_t, 4> block();

  std::uint64_t key_;
  std::uint64_t position_ = 0;  // in blocks of four words
};

}  // namespace shoal
