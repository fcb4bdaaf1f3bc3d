#include "app/profile_json.hpp"

#include <stdlib.h>
#undef CHECK

#include <catch2/catch.hpp>

#include "base/rng.hpp"

namespace shoal::app {

namespace {

core::model_profile small() {
  using namespace std::chrono_literals;
  core::measured_time t{1234567ns, 0.0125, 12};
  core::block_profile b{.name = "h.0",
                        .forward = t,
                        .backward = t,
                        .recompute = t,
                        .optimizer = t,
                        .boundary_bytes = 1,
                        .stash_bytes = 2,
                        .parameter_bytes = 3,
                        .state_bytes = 4,
                        .workspace_bytes = 5};
  return {.model = "gpt2",
          .model_digest = 0xfedcba9876543210,
          .device = "cpu",
          .dtype = "float32",
          .threads = 2,
          .micro_batch_size = 4,
          .blocks = {b, b},
          .links = {{4096, t}},
          .pairs = {{"10.0.0.1", "10.0.0.2:4711", {{4, t}, {4096, t}}},
                    {"10.0.0.2:4711", "10.0.0.1", {{4, t}}}}};
}

std::string refusal(const std::string& from, const std::string& to) {
  auto text = profile_json(small());
  auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  auto parsed = parse_profile_json(text.replace(at, from.size(), to));
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().code == errc::config);
  return parsed.error().text;
}

}  // namespace

TEST_CASE("a profile is read as it was written", "[app][profile]") {
  auto text = profile_json(small());
  auto parsed = parse_profile_json(text);
  INFO((parsed ? "" : parsed.error().text));
  REQUIRE(parsed);
  CHECK(parsed->model_digest == 0xfedcba9876543210);
  CHECK(parsed->blocks.size() == 2);
  CHECK(parsed->blocks[1].forward.value.count() == 1234567);
  CHECK(profile_json(*parsed) == text);
  REQUIRE(parsed->pairs.size() == 2);
  CHECK(parsed->pairs[0].to == "10.0.0.2:4711");
  CHECK(parsed->pairs[0].messages.at(1).message_bytes == 4096);
}

TEST_CASE("a profile without pairs is read", "[app][profile]") {
  auto text = profile_json(small());
  auto at = text.find(",\"pairs\"");
  REQUIRE(at != std::string::npos);
  auto parsed = parse_profile_json(text.substr(0, at) + "}");
  REQUIRE(parsed);
  CHECK(parsed->links.size() == 1);
  CHECK(parsed->pairs.empty());
}

TEST_CASE("what is wrong in a profile is told with its place", "[app][profile]") {
  CHECK_THAT(refusal("\"threads\":2", "\"thraeds\":2"),
             Catch::Contains("profile.thraeds: unknown; did you mean \"threads\""));
  CHECK_THAT(refusal(",\"threads\":2", ""), Catch::Contains("profile.threads: missing"));
  CHECK_THAT(refusal("\"threads\":2", "\"threads\":-2"),
             Catch::Contains("profile.threads: expected a whole number"));
  CHECK_THAT(refusal("\"name\":\"h.0\"", "\"name\":7"),
             Catch::Contains("profile.blocks[0].name: expected a string, found 7"));
  CHECK_THAT(refusal("\"s\":0.001234567", "\"s\":1e300"),
             Catch::Contains("profile.blocks[0].forward.s"));
  CHECK_THAT(refusal("\"profile\":1", "\"profile\":2"), Catch::Contains("version 2"));
  CHECK_THAT(refusal("\"from\"", "\"form\""), Catch::Contains("profile.pairs[0].form: unknown"));
  CHECK_THAT(refusal("\"messages\":[{\"bytes\":4,", "\"messages\":[{\"bytes\":-4,"),
             Catch::Contains("profile.pairs[0].messages[0].bytes: expected a whole number"));
  CHECK_THAT(refusal("fedcba", "xedcba"), Catch::Contains("16 hexadecimal digits"));
  CHECK_FALSE(parse_profile_json("{"));
  CHECK_FALSE(parse_profile_json("[]"));
  CHECK_FALSE(parse_profile_json(std::string((16 << 20) + 1, ' ')));
}

TEST_CASE("damaged profiles are refused or read, and never harm", "[app][profile][fuzz]") {
  auto text = profile_json(small());
  auto random = rng::of(std::array<std::uint64_t, 1>{4}, "profile");
  for (int round = 0; round < 5000; ++round) {
    auto changed = text;
    for (auto n = 1 + random.below(4); n > 0; --n) {
      auto at = random.below(changed.size());
      if (random.below(3) == 0)
        changed.erase(at, 1 + random.below(8));
      else
        changed[at] = static_cast<char>(random.below(256));
    }
    if (auto parsed = parse_profile_json(changed)) CHECK(parse_profile_json(profile_json(*parsed)));
  }
}

}  // namespace shoal::app
