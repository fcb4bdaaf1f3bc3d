// Random bytes against everything that decodes what a tensor port reads. Deterministic: the seed is
// in the test, and a failure prints the round.

#include <catch2/catch.hpp>

#include "base/rng.hpp"
#include "transport/hello.hpp"
#include "transport/wire.hpp"

using namespace shoal;
using namespace shoal::transport;

namespace {

constexpr int rounds = 200'000;
constexpr std::uint64_t bytes_max = 1 << 26;

rng generator(std::uint64_t seed) {
  std::uint64_t words[] = {seed};
  return rng::of(words, "frame_fuzz");
}

/// A sound header of random content.
core::frame_header random_header(rng& random) {
  core::frame_header header{.view = {random.next()},
                            .step = {random.next()},
                            .kind = static_cast<core::frame_kind>(random.below(6)),
                            .block = static_cast<std::uint32_t>(random.next()),
                            .micro_batch = static_cast<std::uint32_t>(random.next()),
                            .part = static_cast<std::uint32_t>(random.next()),
                            .scalar = static_cast<core::scalar_kind>(random.below(4)),
                            .shape = {}};
  header.bytes = core::size_of(header.scalar);
  for (auto n = random.below(7); n > 0; --n) {
    header.shape.push_back(static_cast<std::int64_t>(random.below(10)));
    header.bytes *= static_cast<std::uint64_t>(header.shape.back());
  }
  return header;
}

/// Overwrites, in one of several ways, a few bytes of the first `size`.
template <class Bytes>
void spoil(Bytes& bytes, std::size_t size, rng& random) {
  for (auto n = 1 + random.below(4); n > 0; --n) {
    auto at = random.below(size);
    switch (random.below(4)) {
      case 0:
        bytes[at] ^= static_cast<std::byte>(1u << random.below(8));
        break;
      case 1:
        bytes[at] = static_cast<std::byte>(random.next());
        break;
      case 2:
        bytes[at] = std::byte{0xff};
        break;
      default:
        for (auto end = std::min<std::uint64_t>(size, at + 8); at < end; ++at)
          bytes[at] = static_cast<std::byte>(random.next());
    }
  }
}

}  // namespace

TEST_CASE("mutated headers are refused, and what passes keeps the rules", "[transport][fuzz]") {
  auto random = generator(1);
  int sound = 0;
  for (int round = 0; round < rounds; ++round) {
    auto bytes = encode(random_header(random));
    auto original = bytes;
    spoil(bytes, frame_header_size, random);
    // Half of them with a right hash: the checks behind it must stand by themselves.
    bool sealed = random.below(2) == 0;
    if (sealed) put(bytes, 104, hash_of(std::span(bytes).first(104)));
    auto decoded = decode_frame(bytes, bytes_max);
    if (!decoded) {
      if (decoded.error().text.empty()) FAIL("no reason, round " << round);
      continue;
    }
    ++sound;
    if (!sealed && bytes != original) FAIL("damage passed in round " << round);
    if (!check(*decoded, bytes_max)) FAIL("a forbidden header passed in round " << round);
    if (encode(*decoded) != bytes) FAIL("not the only way to write it, round " << round);
  }
  CHECK(sound > 1000);  // the mutations reach the inside
}

TEST_CASE("mutated hellos and answers are refused or mean what they say", "[transport][fuzz]") {
  auto random = generator(2);
  for (int round = 0; round < rounds; ++round) {
    auto hello = encode(greeting{.job = random.next(),
                                 .from = {{random.next()}, {random.next()}},
                                 .to = {{random.next()}, {random.next()}},
                                 .direction = static_cast<direction_class>(random.below(2))});
    spoil(hello, hello_size, random);
    put(hello, 56, hash_of(std::span(hello).first(56)));
    if (auto decoded = decode_hello(hello); decoded && encode(*decoded) != hello)
      FAIL("hello, round " << round);

    auto answer =
      encode_refusal({static_cast<errc>(random.below(21)), std::string(random.below(600), 'r')});
    spoil(answer, 24, random);
    put(answer, 504, hash_of(std::span(answer).first(504)));
    if (auto decoded = decode_answer(answer); !decoded && decoded.error().text.size() > answer_size)
      FAIL("answer, round " << round);
  }
}

TEST_CASE("random bytes are nothing", "[transport][fuzz]") {
  auto random = generator(3);
  for (int round = 0; round < rounds / 10; ++round) {
    answer_bytes bytes;
    for (std::size_t i = 0; i < bytes.size(); i += 8) put(bytes, i, random.next());
    auto all = std::span<const std::byte, answer_size>(bytes);
    if (decode_answer(all) || decode_hello(all.first<hello_size>()) ||
        decode_frame(all.first<frame_header_size>(), bytes_max) ||
        check_prefix(all.first<hello_prefix_size>()) || is_farewell(all.first<frame_header_size>()))
      FAIL("round " << round);
  }
}
