#include "telemetry/metrics_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace shoal::telemetry {

namespace {

class metrics_path {
public:
  metrics_path() {
    char name[] = "/tmp/shoal-metrics-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~metrics_path() { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/metrics.jsonl"; }
  std::string text() const {
    std::ifstream file(path());
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }
  std::vector<nlohmann::json> lines() const {
    std::vector<nlohmann::json> out;
    std::istringstream file(text());
    for (std::string line; std::getline(file, line);) out.push_back(nlohmann::json::parse(line));
    return out;
  }

private:
  std::string folder_;
};

step_record round_of(std::uint64_t step, core::decision what = core::decision::apply) {
  step_record r;
  r.step = step;
  r.what = what;
  r.loss = 1.0 / static_cast<double>(step);
  r.digest_before = 0x100 + step - 1;
  r.time_s = 1000.0 + static_cast<double>(step);
  r.view = 1;
  return r;
}

metrics_file open(const metrics_path& at, metrics_file::mode how = metrics_file::mode::continued) {
  auto file = metrics_file::open(at.path(), how);
  INFO((file ? "" : file.error().text));
  REQUIRE(file);
  return std::move(*file);
}

}  // namespace

TEST_CASE("each step has one line, with the digest that the next round tells", "[telemetry]") {
  metrics_path at;
  {
    auto file = open(at);
    for (std::uint64_t s = 1; s <= 3; ++s) {
      auto round = round_of(s);
      if (s == 3) round.validation_loss = 2.5;
      REQUIRE(file.step(round));
    }
    REQUIRE(file.step(round_of(4, core::decision::finish)));
    CHECK(file.newest_step() == 3);
  }
  auto lines = at.lines();
  REQUIRE(lines.size() == 4);
  for (std::uint64_t s = 0; s <= 3; ++s) {
    CHECK(lines[s]["step"] == s);
    CHECK(lines[s]["digest"].get<std::string>() == "000000000000010" + std::to_string(s));
    CHECK(lines[s].contains("validation_loss") == (s == 2));
  }
  CHECK_FALSE(lines[0].contains("loss"));
  CHECK(lines[3]["loss"].get<double>() == 1.0 / 3.0);
  CHECK(lines[3]["time_s"].get<double>() == 1003.0);
}

TEST_CASE("a round that is decided again is written once", "[telemetry]") {
  metrics_path at;
  {
    auto file = open(at);
    for (std::uint64_t s : {1, 2, 3, 3, 2, 3, 4, 2, 3, 4, 5}) REQUIRE(file.step(round_of(s)));
  }
  auto lines = at.lines();
  REQUIRE(lines.size() == 6);
  for (std::uint64_t s = 0; s < 6; ++s) CHECK(lines[s]["step"] == s);
  CHECK(lines[4].contains("digest"));
  CHECK_FALSE(lines[5].contains("digest"));  // nobody has told it
}

TEST_CASE("other bits in a round that is decided again are an error", "[telemetry]") {
  metrics_path at;
  auto file = open(at);
  for (std::uint64_t s : {1, 2, 3}) REQUIRE(file.step(round_of(s)));
  auto round = round_of(2);
  round.digest_before = 7;
  auto told = file.step(round);
  REQUIRE_FALSE(told);
  CHECK(told.error().code == errc::internal);
  CHECK(told.error().text.find("after step 1 were 0000000000000101 and are now 0000000000000007") !=
        std::string::npos);
}

TEST_CASE("rounds that nobody told leave a gap, and no line with wrong values", "[telemetry]") {
  metrics_path at;
  {
    auto file = open(at);
    for (std::uint64_t s : {1, 2, 5, 6}) REQUIRE(file.step(round_of(s)));
  }
  auto lines = at.lines();
  REQUIRE(lines.size() == 6);
  CHECK(lines[2]["step"] == 2);
  CHECK_FALSE(lines[2].contains("digest"));
  CHECK(lines[3]["step"] == 4);
  CHECK_FALSE(lines[3].contains("loss"));
  CHECK(lines[3]["digest"] == "0000000000000104");
  CHECK(lines[4]["step"] == 5);
}

TEST_CASE("a new supervisor goes on where the file ends, without a half line", "[telemetry]") {
  metrics_path at;
  {
    auto file = open(at);
    for (std::uint64_t s : {1, 2, 3}) REQUIRE(file.step(round_of(s)));
  }
  std::ofstream(at.path(), std::ios::app) << "{\"step\":4,\"lo";
  {
    auto file = open(at);
    CHECK(file.newest_step() == 3);
    for (std::uint64_t s : {3, 4, 5}) REQUIRE(file.step(round_of(s)));
  }
  auto lines = at.lines();
  std::vector<std::uint64_t> steps;
  for (auto& line : lines) steps.push_back(line["step"]);
  CHECK(steps == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5});
  auto fresh = open(at, metrics_file::mode::fresh);
  CHECK(at.text().empty());
}

TEST_CASE("events are lines of their own", "[telemetry]") {
  metrics_path at;
  auto file = open(at);
  morph_record m;
  m.cause = "loss";
  m.reason = "node 3 was \"lost\"";
  m.pause_s = 0.25;
  m.parts_s = {{"detect", 0.1}, {"agree", 0.15}};
  REQUIRE(file.morph(m, 1234.5));
  REQUIRE(file.event("joined", {{"node", 4}, {"pid", 77}}, 1235.0));
  auto lines = at.lines();
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["event"] == "morph");
  CHECK(lines[0]["parts_s"]["agree"] == 0.15);
  CHECK(lines[0]["reason"] == "node 3 was \"lost\"");
  CHECK(lines[1]["pid"] == 77);
  CHECK(lines[1]["time_s"] == 1235.0);
}

TEST_CASE("a loss that is not finite is null in JSON", "[telemetry]") {
  metrics_path at;
  auto file = open(at);
  auto round = round_of(1, core::decision::skip);
  round.loss = std::nan("");
  REQUIRE(file.step(round));
  REQUIRE(file.step(round_of(2)));
  auto lines = at.lines();
  REQUIRE(lines.size() == 2);
  CHECK(lines[1]["loss"].is_null());
  CHECK(lines[1]["skipped"] == true);
}

TEST_CASE("a file of something else is left alone", "[telemetry]") {
  metrics_path at;
  std::ofstream(at.path()) << "dear diary\n";
  auto file = metrics_file::open(at.path(), metrics_file::mode::continued);
  REQUIRE_FALSE(file);
  CHECK(file.error().code == errc::foreign);
  CHECK(file.error().text.find("metrics.jsonl:1: not a line of metrics") != std::string::npos);
  CHECK(at.text() == "dear diary\n");
}

TEST_CASE("a place without room or permission is told as such", "[telemetry]") {
  auto none = metrics_file::open("/nowhere/at/all/metrics.jsonl", metrics_file::mode::fresh);
  REQUIRE_FALSE(none);
  CHECK(none.error().code == errc::io);
  auto full = metrics_file::open("/dev/full", metrics_file::mode::fresh);
  REQUIRE(full);
  auto told = full->event("joined", {}, 1.0);
  REQUIRE_FALSE(told);
  CHECK(told.error().code == errc::no_space);
  CHECK(told.error().text.find("/dev/full: cannot write the metrics") == 0);
}

}  // namespace shoal::telemetry
