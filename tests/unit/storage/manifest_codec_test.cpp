#include "storage/manifest_codec.hpp"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "storage/hash.hpp"
#include "storage/strict_json.hpp"
#include "unit/storage/samples.hpp"

using namespace shoal;
using namespace shoal::storage;
using namespace shoal::test;

namespace {

core::manifest sample() {
  core::manifest m;
  m.job_text = job_text;
  m.step = {120};
  m.parts = {{0, "block-000.safetensors", 4242, 0xfedcba9876543210, 1},
             {1, "block-001.safetensors", 1, 0, ~0ull}};
  m.weights_digest = core::model_digest({1, ~0ull});
  return m;
}

/// The text of a manifest in which `change` was made, under a checksum that is right.
template <class Change>
std::string changed(Change change) {
  auto json = nlohmann::json::parse(encode_manifest(sample()));
  json.erase("checksum");
  change(json);
  json["checksum"] = hex_of(hash_of(json.dump()));
  return json.dump();
}

}  // namespace

TEST_CASE("a manifest comes back from its text", "[storage]") {
  const auto m = sample();
  const auto decoded = decode_manifest(encode_manifest(m));
  REQUIRE(decoded);
  CHECK(*decoded == m);
  REQUIRE(decode_manifest(changed([](auto&) {})));
}

TEST_CASE("a manifest with a bit flipped or cut anywhere is refused", "[storage]") {
  const auto m = sample();
  const auto text = encode_manifest(m);
  for (std::size_t size = 0; size < text.size() - 1; ++size)  // the last is a line feed
    REQUIRE_FALSE(decode_manifest(text.substr(0, size)));
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    auto flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    // A space between two words may become another kind of space: the same manifest.
    if (const auto decoded = decode_manifest(flipped)) REQUIRE(*decoded == m);
  }
}

TEST_CASE("a manifest that breaks a rule under a right checksum is refused", "[storage]") {
  using json = nlohmann::json;
  struct row {
    const char* what;
    std::string text;
    errc code;
  };
  const std::vector<row> table{
    {"other format", changed([](json& m) { m["format"] = "x"; }), errc::foreign},
    {"newer version", changed([](json& m) { m["version"] = 2, m["new"] = 1; }), errc::foreign},
    {"unknown key", changed([](json& m) { m["x"] = 1; }), errc::damaged},
    {"missing key", changed([](json& m) { m.erase("job"); }), errc::damaged},
    {"step as text", changed([](json& m) { m["step"] = "120"; }), errc::damaged},
    {"negative step", changed([](json& m) { m["step"] = -1; }), errc::damaged},
    {"parts not a list", changed([](json& m) { m["parts"] = 1; }), errc::damaged},
    {"part twice", changed([](json& m) { m["parts"][1] = m["parts"][0]; }), errc::damaged},
    {"part missing", changed([](json& m) { m["parts"].erase(0); }), errc::damaged},
    {"parts in wrong order", changed([](json& m) { std::swap(m["parts"][0], m["parts"][1]); }),
     errc::damaged},
    {"block too large", changed([](json& m) { m["parts"][1]["block"] = 1ull << 40; }),
     errc::damaged},
    {"short hash", changed([](json& m) { m["parts"][0]["hash"] = "12"; }), errc::damaged},
    {"capital hash", changed([](json& m) { m["parts"][0]["hash"] = "FEDCBA9876543210"; }),
     errc::damaged},
    {"digests that do not fit", changed([](json& m) { m["weights_digest"] = "0000000000000000"; }),
     errc::damaged},
    {"too many parts", changed([](json& m) { m["parts"] = json::array_t(10'000, m["parts"][0]); }),
     errc::damaged},
    {"key twice", R"({"format":"shoal-checkpoint",)" + changed([](auto&) {}).substr(1),
     errc::damaged},
    {"a list", "[]", errc::damaged},
    {"nothing", "", errc::damaged},
  };
  for (auto& [what, text, code] : table) {
    INFO(what);
    const auto decoded = decode_manifest(text);
    REQUIRE_FALSE(decoded);
    CHECK(decoded.error().code == code);
  }
  for (auto* name :
       {"", ".", "..", "../block", "/etc/passwd", "a/b", ".hidden", "a b", "a\\b", "block\n",
        "bl\xc3\xb6"
        "ck"}) {
    INFO(name);
    CHECK_FALSE(decode_manifest(changed([&](json& m) { m["parts"][0]["file"] = name; })));
  }
}

TEST_CASE("a checkpoint of another job is foreign by the first key that differs", "[storage]") {
  const auto m = sample();
  CHECK(check_job(m, job_text));
  auto said = [&](const char* ours) {
    const auto checked = check_job(m, ours);
    REQUIRE_FALSE(checked);
    CHECK(checked.error().code == errc::foreign);
    return checked.error().text;
  };
  CHECK_THAT(said("model.dim = 64\nmodel.kind = gpt2\ntraining.seed = 2\n"),
             Catch::Contains("for model.dim it says 128, this job says 64"));
  CHECK_THAT(said("model.dim = 128\nmodel.kind = gpt2\n"),
             Catch::Contains("for training.seed it says 1, this job does not have it"));
  CHECK_THAT(said("model.bias = 1\nmodel.dim = 128\nmodel.kind = gpt2\ntraining.seed = 1\n"),
             Catch::Contains("for model.bias it does not have it, this job says 1"));
  CHECK_THAT(said("model.kind = gpt2\nmodel.dim = 128\ntraining.seed = 1\n"),
             Catch::Contains("another order"));
  CHECK_THAT(said(""), Catch::Contains("model.dim"));
}
