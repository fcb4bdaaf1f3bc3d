#include "core/checkpoint/manifest.hpp"

#include <catch2/catch.hpp>

using namespace shoal;
using namespace shoal::core;

namespace {

manifest sound() {
  manifest m;
  m.step = {4};
  m.parts = {{0, "block-000.safetensors", 10, 1, 11}, {1, "block-001.safetensors", 20, 2, 22}};
  m.weights_digest = model_digest({11, 22});
  return m;
}

parts_written parts(std::uint64_t step, std::vector<block_index> blocks, std::string failure = {}) {
  parts_written p;
  p.step = {step};
  for (auto b : blocks) p.parts.push_back({b, "f" + std::to_string(b), 1, 1, step * 10 + b});
  p.failure = std::move(failure);
  return p;
}

}  // namespace

TEST_CASE("a sound manifest passes", "[core][checkpoint]") { CHECK(check(sound())); }

TEST_CASE("whatever is wrong with a manifest is found and named", "[core][checkpoint]") {
  auto found = [](auto spoil) {
    auto m = sound();
    spoil(m);
    auto r = check(m);
    REQUIRE_FALSE(r);
    CHECK(r.error().code == errc::damaged);
    CHECK(r.error().text.find("step 4") != std::string::npos);
  };
  found([](manifest& m) { m.version = 2; });
  found([](manifest& m) { m.parts.clear(); });
  found([](manifest& m) { std::swap(m.parts[0], m.parts[1]); });
  found([](manifest& m) { m.parts[1].block = 2; });
  found([](manifest& m) { m.parts[1].digest = 23; });
  found([](manifest& m) { m.weights_digest ^= 1; });
  found([](manifest& m) { m.parts[1].file = m.parts[0].file; });
  found([](manifest& m) { m.parts.resize(block_count_max + 1); });
  for (auto name : {"", ".hidden", "..", "../up", "/etc/passwd", "a/b", "a\\b", "a b", "a\nb"})
    found([&](manifest& m) { m.parts[0].file = name; });
  found([](manifest& m) { m.parts[0].file = std::string(200, 'a'); });
}

TEST_CASE("the digest of a model depends on each block and on their order", "[core][checkpoint]") {
  CHECK(model_digest({1, 2}) != model_digest({2, 1}));
  CHECK(model_digest({1, 2}) != model_digest({1, 2, 0}));
  CHECK(model_digest({1, 2}) == model_digest({1, 2}));
}

TEST_CASE("writers take turns", "[core][checkpoint]") {
  CHECK(writer_of(0, 3) == 0);
  CHECK(writer_of(4, 3) == 1);
  CHECK(writer_of(7, 1) == 0);
}

TEST_CASE("a checkpoint is whole when all its parts are there", "[core][checkpoint]") {
  part_collector c(3);
  CHECK_FALSE(c.add(parts(5, {2, 0})));
  auto whole = c.add(parts(5, {1}));
  REQUIRE(whole);
  REQUIRE(whole->size() == 3);
  for (block_index b = 0; b < 3; ++b) CHECK((*whole)[b].block == b);
}

TEST_CASE("two generations are gathered side by side, an older one is dropped",
          "[core][checkpoint]") {
  part_collector c(2);
  CHECK_FALSE(c.add(parts(5, {0})));
  CHECK_FALSE(c.add(parts(6, {0})));
  CHECK_FALSE(c.add(parts(7, {0})));  // the third pushes out the oldest
  CHECK_FALSE(c.add(parts(5, {1})));
  CHECK(c.add(parts(6, {1})));
  CHECK_FALSE(c.add(parts(5, {0, 1})));
  CHECK(c.add(parts(7, {1})));
}

TEST_CASE("a writer's failure drops its generation, which may be tried again",
          "[core][checkpoint]") {
  part_collector c(2);
  CHECK_FALSE(c.add(parts(5, {0})));
  CHECK_FALSE(c.add(parts(5, {}, "the disk is full")));
  CHECK_FALSE(c.add(parts(5, {1})));
  CHECK(c.add(parts(5, {0})));
  CHECK(c.add(parts(5, {0, 1})));  // it turned out damaged, and is written again
}

TEST_CASE("a part of a block that does not exist is ignored", "[core][checkpoint]") {
  part_collector c(1);
  CHECK_FALSE(c.add(parts(5, {9})));
  CHECK(c.add(parts(5, {0})));
}

TEST_CASE("the newest k are kept, and the one in use", "[core][checkpoint]") {
  std::vector<step_id> steps{{30}, {10}, {20}, {40}};
  CHECK(to_delete(steps, 2, {}) == std::vector<step_id>{{10}, {20}});
  CHECK(to_delete(steps, 2, {10}) == std::vector<step_id>{{20}});
  CHECK(to_delete(steps, 0, {}).empty());
  CHECK(to_delete(steps, 4, {}).empty());
}
