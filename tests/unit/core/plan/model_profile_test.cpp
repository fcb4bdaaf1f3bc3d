#include "core/plan/model_profile.hpp"

#include <catch2/catch.hpp>
#include <limits>

using namespace shoal;
using namespace shoal::core;

namespace {

model_profile sound() {
  model_profile p{.model = "gpt2 4x128", .model_digest = 7, .device = "cpu", .dtype = "float32"};
  p.threads = 2, p.micro_batch_size = 4;
  for (int i = 0; i < 3; ++i) {
    block_profile b;
    b.name = "layer " + std::to_string(i);
    b.forward = {10ms, 0.02, 9}, b.backward = {21ms, 0.02, 9};
    b.boundary_bytes = 1 << 20;
    p.blocks.push_back(b);
  }
  p.links = {{1024, {100us}}, {1 << 20, {10ms}}};
  return p;
}

const profile_subject subject{"gpt2 4x128", 7, "float32", 2, 4, "tiny.toml"};

std::string refused(const model_profile& p, errc code, const profile_subject& job = subject) {
  auto checked = check(p, job);
  REQUIRE_FALSE(checked);
  CHECK(checked.error().code == code);
  return checked.error().text;
}

}  // namespace

TEST_CASE("a profile of another model, dtype, threads or size is refused by name",
          "[core][plan][profile]") {
  CHECK(check(sound(), subject));
  auto job = subject;
  job.model = "llama 8x256";
  CHECK(refused(sound(), errc::foreign, job) ==
        "profile is of model gpt2 4x128, job is llama 8x256, run `shoal profile tiny.toml` to make "
        "one");
  job = subject, job.model_digest = 8;
  CHECK_THAT(refused(sound(), errc::foreign, job), Catch::Contains("of digest 7"));
  job = subject, job.dtype = "bfloat16";
  CHECK_THAT(refused(sound(), errc::foreign, job),
             Catch::Contains("dtype float32, job is bfloat16"));
  job = subject, job.threads = 1;
  CHECK_THAT(refused(sound(), errc::foreign, job), Catch::Contains("threads 2, job is 1"));
  job = subject, job.micro_batch_size = 8;
  CHECK_THAT(refused(sound(), errc::foreign, job), Catch::Contains("micro_batch_size 4, job is 8"));
}

TEST_CASE("a profile with impossible numbers is refused with the place", "[core][plan][profile]") {
  auto p = sound();
  p.blocks[1].backward.value = -1ns;
  CHECK_THAT(refused(p, errc::config), Catch::Contains("block 1 (layer 1): backward takes -1 ns"));
  p = sound(), p.blocks[2].forward.value = 0ns;
  CHECK_THAT(refused(p, errc::config), Catch::Contains("was not measured"));
  p = sound(), p.blocks[0].stash_bytes = UINT64_MAX;
  CHECK_THAT(refused(p, errc::config), Catch::Contains("stash of"));
  p = sound(), p.blocks[0].forward.confidence = std::numeric_limits<double>::quiet_NaN();
  CHECK_THAT(refused(p, errc::config), Catch::Contains("confidence of forward"));
  p = sound(), p.blocks.clear();
  CHECK_THAT(refused(p, errc::config), Catch::Contains("empty"));
  p = sound(), p.links[1].message_bytes = 1000;
  CHECK_THAT(refused(p, errc::config), Catch::Contains("link point 1"));
  p = sound(), p.links[0].one_way.value = 0ns;
  CHECK_THAT(refused(p, errc::config), Catch::Contains("link point 0: a message takes 0 ns"));
}

TEST_CASE("the slowest pair is what plans count on, and pairs that cannot be are refused",
          "[core][plan][profile]") {
  auto p = sound();
  CHECK(slowest_pair(p) == nullptr);
  auto table = [](nanoseconds latency, nanoseconds large) {
    return std::vector<message_time>{{4, {latency, 0.01, 5}}, {1 << 20, {large, 0.01, 5}}};
  };
  p.pairs = {{"a", "b:1", table(2ms, 12ms)},
             {"b:1", "a", table(1ms, 101ms)},
             {"a", "c:1", table(3ms, 50ms)}};
  CHECK(check(p, subject));
  CHECK(slowest_pair(p) == &p.pairs[1]);
  auto form = planning_form(p);
  CHECK(form.link_latency == 1ms);
  CHECK(form.link_bytes_per_s == Approx((1 << 20) / 0.1).epsilon(0.01));

  auto bad = [&](auto&& change, const std::string& text) {
    auto wrong = p;
    change(wrong.pairs);
    CHECK_THAT(refused(wrong, errc::config), Catch::Contains(text));
  };
  bad([](auto& pairs) { pairs[0].from = ""; }, "pair 0: an end is not named");
  bad([](auto& pairs) { pairs[0].from = "a\nb"; }, "pair 0: an end is not named");
  bad([](auto& pairs) { pairs[0].to = std::string(257, 'x'); }, "pair 0: an end is not named");
  bad([](auto& pairs) { pairs[2].to = "a"; }, "pair 2 (a to a) leads from a machine to itself");
  bad([](auto& pairs) { pairs[2].to = "b:1"; }, "pair 2 (a to b:1) is there twice");
  bad([](auto& pairs) { pairs[1].messages.clear(); }, "pair 1 (b:1 to a) has no times");
  bad([](auto& pairs) { pairs[1].messages[1].message_bytes = 4; },
      "pair 1 (b:1 to a), link point 1 is of 4 bytes");
  bad([](auto& pairs) { pairs[1].messages[0].one_way.value = 0ns; },
      "link point 0: a message takes");
  bad([](auto& pairs) { pairs.resize(5000, pairs[0]); }, "list of pairs has 5000 entries");
}

TEST_CASE("unlikely measurements are suspicious", "[core][plan][profile]") {
  auto p = sound();
  CHECK(suspicions(p).empty());
  p.blocks[1].backward.value = 130ms;
  p.blocks[2].forward.confidence = 0.3;
  auto found = suspicions(p);
  REQUIRE(found.size() == 2);
  CHECK_THAT(found[0], Catch::Contains("layer 1") && Catch::Contains("13.0 times"));
  CHECK_THAT(found[1], Catch::Contains("30.0 % only"));
}

TEST_CASE("a link's time goes straight from one measured size to the next",
          "[core][plan][profile]") {
  auto p = sound();
  auto at = [&](std::uint64_t bytes) { return transfer_seconds(p.links, bytes); };
  CHECK(at(0) == 100e-6);
  CHECK(at(1024) == 100e-6);
  CHECK(at(1 << 20) == Approx(10e-3));
  CHECK(at((1024 + (1 << 20)) / 2) == Approx((100e-6 + 10e-3) / 2));
  CHECK(at((2 << 20) - 1024) == Approx(10e-3 + (10e-3 - 100e-6)));
  CHECK(transfer_seconds({}, 5) == 0);
  CHECK(transfer_seconds({p.links[0]}, 5000) == 100e-6);
  auto form = planning_form(p);
  CHECK(form.link_latency == 100us);
  CHECK(form.link_bytes_per_s == Approx((1 << 20) / 9.9e-3));
  p.links.pop_back();
  CHECK(planning_form(p).link_bytes_per_s == 0);
  CHECK(form.blocks[2].backward == 21ms);
}
