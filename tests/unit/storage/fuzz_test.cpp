// The readers on bytes that a seed invents: changes to sound files that keep the parts which a
// reader checks first, so that the later checks are met, too.

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "fuzz/manifest_fuzz.hpp"
#include "fuzz/safetensors_fuzz.hpp"
#include "storage/hash.hpp"
#include "storage/strict_json.hpp"
#include "unit/storage/samples.hpp"

using namespace shoal;
using namespace shoal::test;

namespace {

/// Pieces that parsers trip over.
constexpr std::array<std::string_view, 24> pieces{"0",
                                                  "-1",
                                                  "1e9",
                                                  "18446744073709551615",
                                                  "18446744073709551616",
                                                  "4611686018427387904",
                                                  "[]",
                                                  "{}",
                                                  "null",
                                                  "true",
                                                  "\"\"",
                                                  "\"F64\"",
                                                  "\"U8\"",
                                                  ",",
                                                  ":",
                                                  "[",
                                                  "{",
                                                  "\\u0000",
                                                  "\"a\":",
                                                  "\xff",
                                                  "\"dtype\":",
                                                  "[0,0]",
                                                  " ",
                                                  "\n"};

/// Up to four changes: a bit, a piece put in or over, a run cut out, doubled or swapped.
std::string mutate(std::string text, rng& random) {
  for (auto changes = random.below(4) + 1; changes > 0 && !text.empty(); --changes) {
    const auto at = random.below(text.size());
    const auto size = std::min<std::size_t>(random.below(16) + 1, text.size() - at);
    const auto piece = pieces[random.below(pieces.size())];
    switch (random.below(6)) {
      case 0:
        text[at] = static_cast<char>(text[at] ^ (1 << random.below(8)));
        break;
      case 1:
        text.insert(at, piece);
        break;
      case 2:
        text.replace(at, size, piece);
        break;
      case 3:
        text.erase(at, size);
        break;
      case 4:
        text.insert(at, text.substr(at, size));
        break;
      case 5:
        text[at] = static_cast<char>(random.next());
        break;
    }
  }
  return text;
}

}  // namespace

TEST_CASE("the safetensors reader keeps its promises on bytes from a seed", "[storage]") {
  const auto file = file_of(make_block(1, 1), {7});
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  const auto json = file.substr(8, length), data = file.substr(8 + length);
  const std::array<std::uint64_t, 1> seed{1};
  auto random = rng::of(seed, "safetensors");
  int sound = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string changed;
    if (i % 4 == 0) {  // anything anywhere
      changed = mutate(file, random);
    } else {  // the header alone, under a length that is right
      const auto header = mutate(json, random);
      const std::uint64_t size = header.size();
      changed.assign(8, '\0');
      std::memcpy(changed.data(), &size, 8);
      changed += header + data;
    }
    sound += fuzz::safetensors_one(std::as_bytes(std::span(changed)));
  }
  CHECK(fuzz::safetensors_one(std::as_bytes(std::span(file))));
  CHECK(sound > 0);       // some changes are to spaces or optimizer state
  CHECK(sound < 10'000);  // and most are not
}

TEST_CASE("the manifest reader keeps its promises on text from a seed", "[storage]") {
  core::manifest m;
  m.job_text = job_text;
  m.step = {120};
  m.parts = {{0, "block-000.safetensors", 4242, 1, 2}, {1, "block-001.safetensors", 1, 3, 4}};
  m.weights_digest = core::model_digest({2, 4});
  const auto text = storage::encode_manifest(m);
  const std::array<std::uint64_t, 1> seed{1};
  auto random = rng::of(seed, "manifest");
  int resealed = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto changed = mutate(text, random);
    fuzz::manifest_one(changed);
    // Under a checksum made right again, so that what lies behind it is reached.
    auto json = nlohmann::json::parse(changed, nullptr, false);
    if (!json.is_object() || !json.erase("checksum")) continue;
    json["checksum"] = storage::hex_of(storage::hash_of(json.dump()));
    fuzz::manifest_one(json.dump());
    ++resealed;
  }
  CHECK(fuzz::manifest_one(text));
  CHECK(resealed > 1000);
}
