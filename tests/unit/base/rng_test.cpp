#include "base/rng.hpp"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

using namespace shoal;

namespace {

using words = std::array<std::uint32_t, 4>;

struct moments {
  double mean = 0, deviation = 0;
};

moments moments_of(const std::vector<float>& numbers) {
  double sum = 0, squares = 0;
  for (auto x : numbers) sum += x, squares += double(x) * x;
  double mean = sum / double(numbers.size());
  return {mean, std::sqrt(squares / double(numbers.size()) - mean * mean)};
}

}  // namespace

TEST_CASE("Philox gives the known answers of its authors", "[base][rng]") {
  // Random123, tests/kat_vectors, philox4x32 with 10 rounds.
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a stream depends on its name and on nothing else", "[base][rng]") {
  std::array<std::uint64_t, 3> name{7, 11, 13};
  auto first = rng::of(name, "h.0.attn"), again = rng::of(name, "h.0.attn");
  std::vector<std::uint64_t> drawn;
  for (int i = 0; i < 100; ++i) drawn.push_back(first.next());
  for (auto word : drawn) CHECK(again.next() == word);

  auto copy = first;
  CHECK(copy.next() == first.next());
}

TEST_CASE("names that differ in any part give other keys", "[base][rng]") {
  std::set<std::uint64_t> keys;
  std::size_t names = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    for (std::uint64_t step = 0; step < 10; ++step)
      for (auto text : {"", "a", "b", "ab", "ba"}) {
        keys.insert(mix_key(std::array{seed, step}, text));
        ++names;
      }
  // Another split into words and text is another name too.
  keys.insert(mix_key(std::array<std::uint64_t, 1>{5}));
  keys.insert(mix_key(std::array<std::uint64_t, 3>{5, 5, 5}));
  CHECK(keys.size() == names + 2);
}

TEST_CASE("keys and streams never change between versions", "[base][rng]") {
  std::array<std::uint64_t, 2> name{1, 2};
  CHECK(mix_key(name, "wte") == 12032948244402894649u);
  rng stream(42);
  CHECK(stream.next() == 8643895580192075859u);
  CHECK(stream.next() == 6033254488940945703u);
}

TEST_CASE("one flipped bit of the key changes half of the bits", "[base][rng]") {
  int flipped = 0;
  for (unsigned bit = 0; bit < 64; ++bit)
    flipped += std::popcount(rng(123).next() ^ rng(123 ^ std::uint64_t{1} << bit).next());
  CHECK(flipped > 64 * 32 - 300);
  CHECK(flipped < 64 * 32 + 300);
}

TEST_CASE("numbers below a bound are all there and equally likely", "[base][rng]") {
  rng stream(5);
  std::vector<double> seen(7, 0);
  for (int i = 0; i < 70'000; ++i) ++seen[stream.below(7)];
  double chi_square = 0;
  for (auto times : seen) chi_square += (times - 10'000) * (times - 10'000) / 10'000;
  CHECK(chi_square < 30);
  for (int i = 0; i < 100; ++i) CHECK(stream.below(1) == 0);
  auto large = (std::uint64_t{1} << 63) + 1;
  for (int i = 0; i < 100; ++i) CHECK(stream.below(large) < large);
}

TEST_CASE("uniform numbers fill [0, 1)", "[base][rng]") {
  rng stream(6);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    auto x = stream.uniform();
    REQUIRE((x >= 0 && x < 1));
    sum += x;
  }
  CHECK(sum / 10'000 == Approx(0.5).margin(0.01));

  std::vector<float> many(100'001);
  stream.fill_uniform(many);
  CHECK(*std::min_element(many.begin(), many.end()) >= 0);
  CHECK(*std::max_element(many.begin(), many.end()) < 1);
  auto [mean, deviation] = moments_of(many);
  CHECK(mean == Approx(0.5).margin(0.005));
  CHECK(deviation == Approx(std::sqrt(1.0 / 12)).margin(0.005));
}

TEST_CASE("normal numbers have their moments and tails", "[base][rng]") {
  std::vector<float> many(200'002);
  rng(7).fill_normal(many, 0.02f);
  auto [mean, deviation] = moments_of(many);
  CHECK(mean == Approx(0).margin(2e-4));
  CHECK(deviation == Approx(0.02).epsilon(0.01));
  auto within = [&](double factor) {
    return double(std::count_if(many.begin(), many.end(),
                                [&](float x) { return std::abs(x) < factor * 0.02; })) /
           double(many.size());
  };
  CHECK(within(1) == Approx(0.6827).margin(0.005));
  CHECK(within(2) == Approx(0.9545).margin(0.003));
  CHECK(within(3) == Approx(0.9973).margin(0.001));
  for (auto x : many) REQUIRE(std::isfinite(x));
  // Neighbours come from one pair of words and must not hang together.
  double product = 0;
  for (std::size_t i = 0; i + 1 < many.size(); i += 2) product += double(many[i]) * many[i + 1];
  CHECK(product / double(many.size() / 2) / (0.02 * 0.02) == Approx(0).margin(0.02));
}

TEST_CASE("a dropout mask keeps its share and its mean", "[base][rng]") {
  std::vector<float> mask(100'000);
  rng(8).fill_keep_mask(mask, 0.9f);
  auto kept = std::count(mask.begin(), mask.end(), 1 / 0.9f);
  auto dropped = std::count(mask.begin(), mask.end(), 0.0f);
  CHECK(kept + dropped == 100'000);
  CHECK(double(kept) == Approx(90'000).margin(500));
  rng(8).fill_keep_mask(mask, 1);
  CHECK(std::count(mask.begin(), mask.end(), 1.0f) == 100'000);
}

TEST_CASE("a short fill is the beginning of a long one", "[base][rng]") {
  for (std::size_t size = 0; size < 10; ++size) {
    std::vector<float> some(size), all(12);
    rng(9).fill_normal(some, 1);
    rng(9).fill_normal(all, 1);
    all.resize(size);
    CHECK(some == all);
  }
}

TEST_CASE("a fill takes whole blocks, so that what follows has its own place", "[base][rng]") {
  std::vector<float> one(1), four(4);
  rng a(10), b(10);
  a.fill_uniform(one);
  b.fill_uniform(four);
  CHECK(a.next() == b.next());
}
