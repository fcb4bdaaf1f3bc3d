#include "app/commands.hpp"

#include <stdlib.h>
#undef CHECK

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace shoal::app {

namespace {

namespace fs = std::filesystem;

class scratch {
public:
  scratch() {
    std::string name = fs::temp_directory_path() / "shoal-commands-XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~scratch() { fs::remove_all(path); }
  fs::path path;
};

job_file job_with(const scratch& at, std::vector<std::string> overrides = {}) {
  std::ofstream(at.path / "text.txt") << std::string(4000, 'x');
  parse_options options;
  options.overrides = {"job.folder=" + at.path.string() + "/run",
                       "data.path=" + at.path.string() + "/text.txt",
                       "model.layers=1",
                       "model.dim=8",
                       "model.heads=2",
                       "model.seq_len=8",
                       "training.steps=2",
                       "training.micro_batches=2",
                       "training.micro_batch_size=1"};
  options.overrides.insert(options.overrides.end(), overrides.begin(), overrides.end());
  auto parsed = parse_job("", options);
  INFO((parsed ? "" : parsed.error().text));
  REQUIRE(parsed);
  return *parsed;
}

errc code_of(const result<void>& done) {
  REQUIRE_FALSE(done);
  UNSCOPED_INFO(done.error().text);
  return done.error().code;
}

}  // namespace

TEST_CASE("validate finds what is wrong with model and data before anything starts", "[app]") {
  scratch at;
  auto outcome = [&](std::vector<std::string> overrides) {
    return validate({}, job_with(at, std::move(overrides)), {});
  };
  CHECK(outcome({}));
  CHECK(code_of(outcome({"model.kind=gpt3"})) == errc::config);
  CHECK(code_of(outcome({"data.kind=tekst", "data.validation_fraction=0"})) == errc::config);
  CHECK(code_of(outcome({"data.path=" + at.path.string() + "/nothing"})) == errc::data);
  CHECK(code_of(outcome({"training.micro_batches=1000", "training.micro_batch_size=1000"})) ==
        errc::data);
  CHECK(code_of(outcome({"model.seq_len=100000"})) == errc::data);
}

TEST_CASE("the reference writes the metrics of each step, with digests", "[app]") {
  scratch at;
  reference_options quiet;
  quiet.output.quiet = true;
  std::vector<step_info> told;
  trainer mine;
  mine.on_step = [&](const step_info& s) { told.push_back(s); };
  auto done = reference(quiet, job_with(at, {"validation.every=1"}), mine);
  INFO((done ? "" : done.error().text));
  REQUIRE(done);
  REQUIRE(told.size() >= 2);
  CHECK(told[0].step == 1);
  CHECK(told[0].validation_loss.has_value() == false);
  CHECK(told[1].validation_loss.has_value());
  std::ifstream file(at.path / "run" / "metrics.jsonl");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  REQUIRE(lines.size() == 3);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CHECK(lines[i].find("{\"step\":" + std::to_string(i)) == 0);
    CHECK(lines[i].find("\"digest\":\"") != std::string::npos);
  }
  CHECK(lines[2].find("\"validation_loss\":") != std::string::npos);
}

TEST_CASE("a reference that cannot write its folder says so", "[app]") {
  scratch at;
  auto done = reference({}, job_with(at, {"job.folder=/proc/nowhere"}), {});
  CHECK(code_of(done) != errc::internal);
  CHECK(done.error().text.find("/proc/nowhere") != std::string::npos);
}

TEST_CASE("digest without a checkpoint is an error that says where it looked", "[app]") {
  scratch at;
  auto done = digest({at.path.string(), false});
  CHECK(code_of(done) == errc::checkpoint_unusable);
  CHECK(code_of(digest({(at.path / "nothing").string(), false})) == errc::io);
  fs::create_directories(at.path / "checkpoints" / "step-00000005");
  CHECK(code_of(digest({at.path.string(), false})) == errc::checkpoint_unusable);
  std::ofstream(at.path / "checkpoints" / "step-00000005" / "manifest.json") << "{}";
  CHECK(code_of(digest({at.path.string(), false})) == errc::damaged);
}

TEST_CASE("schedule makes, reads and checks, and says what is wrong", "[app]") {
  scratch at;
  CHECK(schedule({.what = "zb-h1", .ranks = 2, .micro_batches = 4, .lower = true}));
  CHECK(code_of(schedule({.what = "1f1b"})) == errc::usage);
  CHECK(code_of(schedule({.what = "1f2b", .ranks = 2, .micro_batches = 4})) == errc::config);
  auto file = at.path / "table.csv";
  CHECK(code_of(schedule({.what = file.string()})) == errc::io);
  std::ofstream(file) << "0F0,0B0\n1F0,1B0\n";
  CHECK(schedule({.what = file.string()}));
  std::ofstream(file) << "0B0,0F0\n1F0,1B0\n";
  auto wrong_order = schedule({.what = file.string()});
  CHECK(code_of(wrong_order) == errc::config);
  CHECK_THAT(wrong_order.error().text, Catch::Contains("0B0"));
}

TEST_CASE("profile writes what it measured, whole or not at all", "[app]") {
  scratch at;
  auto file = at.path / "profile.json";
  profile_options options;
  options.output = file.string();
  options.dry_run = true;
  CHECK(profile(options, job_with(at), {}));
  CHECK_FALSE(fs::exists(file));
  options.dry_run = false;
  auto done = profile(options, job_with(at, {"model.layers=3"}), {});
  INFO((done ? "" : done.error().text));
  REQUIRE(done);
  auto json = nlohmann::json::parse(std::ifstream(file));
  CHECK(json["threads"] == 1);
  CHECK(json["dtype"] == "float32");
  REQUIRE(json["blocks"].size() == 5);
  CHECK(json["blocks"][3]["forward"]["s"].get<double>() > 0);
  CHECK(json["blocks"][3]["forward"] == json["blocks"][1]["forward"]);
  REQUIRE(json["links"].size() == 5);
  CHECK(json["links"][4]["one_way"]["s"].get<double>() > 0);
  options.output = (at.path / "nowhere" / "profile.json").string();
  auto unwritten = profile(options, job_with(at), {});
  CHECK(code_of(unwritten) == errc::io);
  CHECK_THAT(unwritten.error().text, Catch::Contains("nowhere"));
}

TEST_CASE("plan takes nodes of several kinds, and says what is wrong with one", "[app]") {
  scratch at;
  auto refused = [&](plan_options options) {
    auto made = plan(options, job_with(at), {});
    REQUIRE_FALSE(made);
    CHECK(made.error().code == errc::usage);
    return made.error().text;
  };
  plan_options options;
  CHECK_THAT(refused(options), Catch::Contains("--kind"));
  options.kinds = {"2,speed=1,memory=4GiB", "1,speed=0.5"};
  CHECK(plan(options, job_with(at), {}));
  options.nodes = 3;
  CHECK(plan(options, job_with(at), {}));
  options.nodes = 4;
  CHECK_THAT(refused(options), Catch::Contains("the kinds have 3 nodes"));
  options.nodes = 0;
  for (auto& [text, told] : std::vector<std::pair<std::string, std::string>>{
         {"0", "from 1 to 1000000"},
         {"", "from 1 to 1000000"},
         {"-2", "from 1 to 1000000"},
         {"2,speed=0", "from 0.001 to 1000"},
         {"2,speed=fast", "from 0.001 to 1000"},
         {"2,speed=nan", "from 0.001 to 1000"},
         {"2,memory=x", "COUNT[,speed=SHARE][,memory=SIZE]"},
         {"2,price=3", "\"price=3\" is not known"},
         {"2,,speed=1", "\"\" is not known"},
         {"999999,speed=1", ""}}) {
    CAPTURE(text);
    options.kinds = {text, "5"};
    CHECK_THAT(refused(options), Catch::Contains(told));
  }
}

TEST_CASE("plan uses a profile of the same model, and refuses any other", "[app]") {
  scratch at;
  auto file = (at.path / "profile.json").string();
  profile_options measure;
  measure.output = file;
  REQUIRE(profile(measure, job_with(at), {}));
  plan_options options;
  options.nodes = 3;
  CHECK(plan(options, job_with(at), {}));  // estimates
  options.profile = file;
  CHECK(plan(options, job_with(at), {}));
  auto other = plan(options, job_with(at, {"model.layers=2"}), {});
  CHECK(code_of(other) == errc::foreign);
  CHECK_THAT(other.error().text, Catch::Contains("shoal profile"));
  CHECK(code_of(plan(options, job_with(at, {"training.threads=2"}), {})) == errc::foreign);
  options.memory = "1MiB";
  CHECK(code_of(plan(options, job_with(at), {})) == errc::no_memory);
  options.memory = "many";
  CHECK_FALSE(plan(options, job_with(at), {}));
  options.memory.clear();
  options.profile = (at.path / "none.json").string();
  CHECK(code_of(plan(options, job_with(at), {})) == errc::io);
}

}  // namespace shoal::app
