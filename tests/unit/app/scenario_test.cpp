#include "app/scenario.hpp"

#include <stdlib.h>
#undef CHECK

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/rng.hpp"

namespace shoal::app {

namespace {

const std::string small = R"({
  "schedule": {"name": "1f1b", "ranks": 4, "micro_batches": 8},
  "stage": {"forward": "1ms", "backward": "2ms", "input_bytes": "1KiB", "parameter_bytes": 1000000},
  "link": {"latency": "0s", "rate": "unlimited"}
})";

/// `small` with one piece of text in place of another.
std::string with(const std::string& from, const std::string& to) {
  auto text = small;
  auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

core::simulation ran(const std::string& text) {
  auto what = parse_scenario(text);
  INFO((what ? "" : what.error().text));
  REQUIRE(what);
  auto done = run_scenario(*what, true);
  INFO((done ? "" : done.error().text));
  REQUIRE(done);
  return *done;
}

std::string refusal(const std::string& text) {
  auto what = parse_scenario(text);
  REQUIRE_FALSE(what);
  CHECK(what.error().code == errc::config);
  return what.error().text;
}

}  // namespace

TEST_CASE("a scenario is simulated as it says", "[app][scenario]") {
  CHECK(ran(small).pipeline_ns == 11 * 3'000'000);
  CHECK(ran(with("\"latency\": \"0s\"", "\"latency\": \"1ms\"")).pipeline_ns > 33'000'000);
  // Two replicas, a ring of two at 1 GB/s: 1 ms for each stage, the first one's in the open.
  auto two = ran(with("\"link\":", R"("replicas": 2, "step_overhead": "500us",
    "reduction": {"kind": "ring", "link": {"rate": "1GB/s"}}, "link":)"));
  CHECK(two.makespan_ns == 33'000'000 + 1'000'000 + 500'000);
  CHECK(two.replicas.size() == 2);
  auto csv = ran(with(R"({"name": "1f1b", "ranks": 4, "micro_batches": 8})",
                      R"({"csv": "0F0,0B0\n1F0,1B0\n"})"));
  CHECK(csv.pipeline_ns == 2 * 3'000'000);
  auto table = ran(with(R"({"latency": "0s", "rate": "unlimited"})",
                        R"([{"bytes": 1, "latency": "1ms", "rate": "1MB/s"},
                            {"bytes": "1MiB", "latency": "1ms", "rate": "100MB/s"}])"));
  CHECK(table.pipeline_ns > 33'000'000);
}

TEST_CASE("each scenario in configs runs", "[app][scenario]") {
  int count = 0;
  for (auto& entry : std::filesystem::directory_iterator(SHOAL_SOURCE_DIR "/configs/scenarios")) {
    INFO(entry.path());
    std::ifstream file(entry.path());
    auto done = ran({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
    CHECK(done.makespan_ns > 0);
    ++count;
  }
  CHECK(count >= 2);
}

TEST_CASE("what is wrong in a scenario is told with its place", "[app][scenario]") {
  CHECK_THAT(refusal(with("\"link\"", "\"lnik\"")),
             Catch::Contains("scenario.lnik: unknown; did you mean \"link\"?"));
  CHECK_THAT(refusal(with("\"forward\": \"1ms\"", "\"forward\": 1")),
             Catch::Contains("scenario.stage.forward: expected a duration"));
  CHECK_THAT(refusal(with("\"forward\": \"1ms\", ", "")),
             Catch::Contains("scenario.stage.forward: missing"));
  CHECK_THAT(refusal(with("unlimited", "fast")), Catch::Contains("scenario.link.rate"));
  CHECK_THAT(refusal(with("\"1f1b\"", "\"1f2b\"")), Catch::Contains("did you mean \"1f1b\""));
  CHECK_THAT(refusal(with("\"ranks\": 4", "\"ranks\": -4")),
             Catch::Contains("scenario.schedule.ranks: expected a whole number"));
  CHECK_THAT(refusal(with("\"ranks\": 4", "\"ranks\": 0")), Catch::Contains("scenario.schedule"));
  CHECK_THAT(refusal(with("\"stage\":", "\"stages\": [], \"stage\":")),
             Catch::Contains("expected either \"stage\""));
  CHECK_THAT(refusal(with("\"link\":", "\"replicas\": 0, \"link\":")),
             Catch::Contains("scenario.replicas: expected at least 1"));
  CHECK_THAT(refusal(with("\"link\":", "\"reduction\": {\"kind\": \"tree\"}, \"link\":")),
             Catch::Contains("scenario.reduction.kind"));
  CHECK_THAT(refusal(with("\"link\":", "\"jitter\": 1e999, \"link\":")), !Catch::Contains("ok"));
  CHECK_THAT(
    refusal(with(R"({"name": "1f1b", "ranks": 4, "micro_batches": 8})", R"({"csv": "0B0,0F0\n"})")),
    Catch::Contains("scenario.schedule"));
  CHECK_FALSE(parse_scenario("{"));
  CHECK_FALSE(parse_scenario("null"));
}

TEST_CASE("damaged scenarios are refused or run, and never harm", "[app][scenario][fuzz]") {
  auto random = rng::of(std::array<std::uint64_t, 1>{5}, "scenario");
  for (int round = 0; round < 4000; ++round) {
    auto changed = small;
    for (auto n = 1 + random.below(3); n > 0; --n) {
      auto at = random.below(changed.size());
      if (random.below(3) == 0)
        changed.erase(at, 1 + random.below(6));
      else
        changed[at] =
          static_cast<char>(random.below(2) == 0 ? '0' + random.below(10) : random.below(256));
    }
    auto what = parse_scenario(changed);
    // Large but legal sizes would only take long.
    if (what && what->plan.ranks.size() <= 64 && what->plan.micro_batches <= 256)
      (void)run_scenario(*what, false);
  }
}

}  // namespace shoal::app
