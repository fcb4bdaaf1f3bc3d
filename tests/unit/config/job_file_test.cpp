#include "app/config/job_file.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "app/config/job_text.hpp"
#include "app/config/keys.hpp"

namespace shoal::app {

namespace {

using namespace std::chrono_literals;

const std::string least = "[data]\npath = \"text.txt\"\n";

result<job_file> parse(const std::string& text, std::vector<std::string> overrides = {}) {
  parse_options options;
  options.overrides = std::move(overrides);
  options.variables = [](const std::string& name) -> std::optional<std::string> {
    if (name == "DATA") return "/corpus";
    if (name == "EMPTY") return "";
    return std::nullopt;
  };
  return parse_job(text, options);
}

core::job_options good(const std::string& text, std::vector<std::string> overrides = {}) {
  auto parsed = parse(text, std::move(overrides));
  INFO((parsed ? "" : parsed.error().text));
  REQUIRE(parsed);
  return parsed->job;
}

std::string wrong(const std::string& text, std::vector<std::string> overrides = {}) {
  auto parsed = parse(text, std::move(overrides));
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().code == errc::config);
  return parsed.error().text;
}

}  // namespace

TEST_CASE("a file of two lines has defaults for everything else", "[config]") {
  auto job = good(least);
  CHECK(job.data.path == "text.txt");
  CHECK(job.training.micro_batches == core::training_options{}.micro_batches);
}

TEST_CASE("keys of every kind are read", "[config]") {
  auto job = good(least + R"(
validation_fraction = 0.25
[job]
name = "x"
seed = 9223372036854775807
[model]
kind = "conv"
custom = { channels = 16, wide = true, scale = 0.5, title = "a \"b\"" }
[training]
steps = 7
recompute = true
on_not_finite = "skip"
[optimizer]
lr = 3e-3
weight_decay = 1
[nodes]
memory = "2GiB"
[timeouts]
failure = "1.5s"
[emulate]
rate = "100Mbit/s"
[[churn.event]]
at_step = 25
action = "join"
[[churn.event]]
at_step = 15
action = "kill"
count = 2
)");
  CHECK(job.seed == 9223372036854775807u);
  CHECK(job.data.validation_fraction == 0.25);
  CHECK(job.model.custom.at("channels") == "16");
  CHECK(job.model.custom.at("wide") == "true");
  CHECK(job.model.custom.at("scale") == "0.5");
  CHECK(job.model.custom.at("title") == "a \"b\"");
  CHECK(job.training.on_not_finite == core::not_finite_policy::skip);
  CHECK(job.training.recompute == core::recompute_rule::always);
  CHECK(job.optimizer.lr == 3e-3);
  CHECK(job.optimizer.weight_decay == 1.0);
  CHECK(job.nodes.memory.value == 2ull << 30);
  CHECK(job.timeouts.failure == 1500ms);
  CHECK(job.emulate.rate.bytes_per_s == 12.5e6);
  REQUIRE(job.churn.events.size() == 2);
  CHECK(job.churn.events[0].at_step == 15);  // in order of step
  CHECK(job.churn.events[0].count == 2);
  CHECK(job.churn.events[1].action == core::churn_action::join);
}

TEST_CASE("an unknown key is an error with its place and the nearest name", "[config]") {
  CHECK(wrong(least + "[training]\nstep = 5\n") ==
        "job.toml:4:1: there is no key 'training.step'; the nearest is 'training.steps'");
  CHECK(wrong(least + "[training]\n  mirco_batches = 5\n") ==
        "job.toml:4:3: there is no key 'training.mirco_batches'; the nearest is "
        "'training.micro_batches'");
  // The right name in the wrong table.
  CHECK(wrong(least + "[optimizer]\nmax_norm = 1\n") ==
        "job.toml:4:1: there is no key 'optimizer.max_norm'; the nearest is 'training.max_norm'");
  CHECK(wrong(least + "[job]\nelephants = 5\n") ==
        "job.toml:4:1: there is no key 'job.elephants'; --print-config shows all");
  CHECK(wrong(least + "[trainning]\nsteps = 5\nmicro_batches = 2\n") ==
        "job.toml:3:2: there is no table [trainning]; the nearest is [training]");
  CHECK(wrong("seed = 3\n" + least) ==
        "job.toml:1:1: there is no key 'seed'; the nearest is 'job.seed'");
}

TEST_CASE("a wrong type or range names the key and what is allowed", "[config]") {
  CHECK(wrong(least + "[training]\nsteps = 0\n") ==
        "job.toml:4:1: training.steps: expected an integer from 1 to 1000000000, got 0");
  CHECK(wrong(least + "[training]\nsteps = \"7\"\n") ==
        "job.toml:4:1: training.steps: expected an integer from 1 to 1000000000, got \"7\"");
  CHECK(wrong(least + "[training]\nsteps = 7.5\n").find("got 7.5") != std::string::npos);
  CHECK(wrong(least + "[model]\ndropout = 1.0\n") ==
        "job.toml:4:1: model.dropout: expected a number from 0.0 to below 1.0, got 1.0");
  CHECK(wrong(least + "[optimizer]\nlr = nan\n").find("got nan") != std::string::npos);
  CHECK(wrong(least + "[optimizer]\nlr = inf\n").find("got inf") != std::string::npos);
  CHECK(wrong(least + "[optimizer]\nname = \"adam\"\n") ==
        "job.toml:4:1: optimizer.name: expected \"adamw\" or \"sgd\", got \"adam\"");
  CHECK(wrong(least + "[timeouts]\nfailure = 2\n").find("a time with its unit") !=
        std::string::npos);
  CHECK(wrong(least + "[timeouts]\nfailure = \"5h\"\norphan = \"48h\"\n").find("timeouts.orphan") !=
        std::string::npos);
  CHECK(wrong(least + "[emulate]\nrate = \"fast\"\n").find("100Mbit/s") != std::string::npos);
  CHECK(wrong(least + "[nodes]\nmemory = -1\n").find("2GiB") != std::string::npos);
  CHECK(wrong(least + "[training]\nrecompute = 1\n").find("true, false or \"auto\", got 1") !=
        std::string::npos);
  CHECK(wrong(least + "[training]\nsteps = [1]\n").find("got an array") != std::string::npos);
  CHECK(wrong("data = 3\n") == "job.toml:1:1: there is no key 'data'; --print-config shows all");
  CHECK(wrong(least + "[model.custom]\nlist = [1, 2]\n").find("got an array") != std::string::npos);
}

TEST_CASE("a wrong event of churn is named", "[config]") {
  CHECK(wrong(least + "[[churn.event]]\nat_step = 3\naction = \"explode\"\n")
          .find("action: expected \"kill\", \"leave\" or \"join\", got \"explode\"") !=
        std::string::npos);
  CHECK(wrong(least + "[[churn.event]]\nat_stpe = 3\naction = \"kill\"\n")
          .find("the nearest is 'at_step'") != std::string::npos);
  CHECK(wrong(least + "[[churn.event]]\naction = \"kill\"\n").find("at_step and action") !=
        std::string::npos);
}

TEST_CASE("what is not TOML is an error with its place", "[config]") {
  CHECK(wrong("[data\n").find("job.toml:1:6: not TOML: ") == 0);
  CHECK(wrong(least + "path = \"again\"\n").find("job.toml:3:") == 0);
}

TEST_CASE("several errors are told at once, in order of line, ten at most", "[config]") {
  auto text = wrong(least + "[training]\nsteps = 0\nbatches = 2\n[model]\nheads = -1\n");
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
  CHECK(text.find("job.toml:4") < text.find("job.toml:5"));
  CHECK(text.find("job.toml:5") < text.find("job.toml:7"));
  std::string many = least + "[job]\n";
  for (int i = 0; i < 13; ++i) many += "nonsense" + std::to_string(i) + " = 1\n";
  text = wrong(many);
  CHECK(std::count(text.begin(), text.end(), '\n') == 10);
  CHECK(text.find("\nand 3 more") != std::string::npos);
}

TEST_CASE("an override beats the file and is checked like it", "[config]") {
  CHECK(good(least + "[training]\nsteps = 5\n", {"training.steps=50"}).training.steps == 50);
  CHECK(good(least, {"training.steps=50", "training.steps=60"}).training.steps == 60);
  CHECK(good(least, {"data.path=/a b/c=d.txt"}).data.path == "/a b/c=d.txt");
  CHECK(good(least, {"job.name=123"}).name == "123");
  CHECK(good(least, {"job.name=\"quoted\""}).name == "quoted");
  CHECK(good(least, {"timeouts.failure=200ms"}).timeouts.failure == 200ms);
  CHECK(good(least, {"emulate.rate=100Mbit/s"}).emulate.rate.bytes_per_s == 12.5e6);
  CHECK(good(least, {"model.kind=conv", "model.custom.channels=8"}).model.custom.at("channels") ==
        "8");
  auto job = good(least, {"churn.event=[{at_step=4,action=\"kill\"},{at_step=2,action=\"join\"}]"});
  REQUIRE(job.churn.events.size() == 2);
  CHECK(job.churn.events[0].action == core::churn_action::join);

  CHECK(wrong(least, {"training.stesp=50"}) ==
        "command line: there is no key 'training.stesp'; the nearest is 'training.steps'");
  CHECK(wrong(least, {"training.steps=many"}) ==
        "command line: training.steps: expected an integer from 1 to 1000000000, got \"many\"");
  CHECK(wrong(least, {"training.steps"}).find("expected KEY=VALUE") != std::string::npos);
  CHECK(wrong(least, {"=5"}).find("expected KEY=VALUE") != std::string::npos);
  CHECK(wrong(least, {"training={steps=5}"}) ==
        "command line: training is a table; set its keys, as in training.KEY=VALUE");
}

TEST_CASE("variables of the environment are replaced, never by nothing", "[config]") {
  CHECK(good("[data]\npath = \"${DATA}/a.txt\"\n").data.path == "/corpus/a.txt");
  CHECK(good("[data]\npath = \"$${DATA}/$a\"\n").data.path == "${DATA}/$a");
  CHECK(wrong("[data]\npath = \"${NOPE}/a.txt\"\n") ==
        "job.toml:2:1: data.path: the environment variable 'NOPE' is not set; set it, or write the "
        "value here");
  CHECK(wrong("[data]\npath = \"${EMPTY}\"\n").find("is empty") != std::string::npos);
  CHECK(wrong("[data]\npath = \"${DATA\"\n").find("without \"}\"") != std::string::npos);
  CHECK(good("[data]\npath = \"x\"\nkind = \"mine\"\n[data.custom]\nroot = \"${DATA}\"\n")
          .data.custom.at("root") == "/corpus");
  // The shell has replaced those of a command line already.
  CHECK(good(least, {"data.path=${NOPE}"}).data.path == "${NOPE}");
}

TEST_CASE("rules between keys point at a key", "[config]") {
  CHECK(wrong(least + "[model]\ndim = 100\nheads = 7\n") ==
        "job.toml:5:1: model.heads model.dim (100) is not a multiple of model.heads (7)");
  CHECK(wrong(least + "[model]\nkind = \"llama\"\ndim = 96\nheads = 6\nkv_heads = 4\n")
          .find("not a multiple of model.kv_heads (4)") != std::string::npos);
  CHECK(wrong(least + "[model]\nkind = \"llama\"\ndim = 18\nheads = 6\n").find("must be even") !=
        std::string::npos);
  CHECK(wrong(least + "[training]\nreduction_leaf = 17\n").find("training.micro_batches (16)") !=
        std::string::npos);
  CHECK(wrong(least + "[lr_scheduler]\nwarmup_steps = 1000\n").find("training.steps (100)") !=
        std::string::npos);
  CHECK(wrong(least + "[parallelism]\nnodes_min = 4\nnodes_max = 3\n").find("nodes_min (4)") !=
        std::string::npos);
  CHECK(wrong(least + "[parallelism]\ndepth = 4\nnodes_max = 3\n").find("parallelism.depth") !=
        std::string::npos);
  CHECK(wrong(least + "[model]\nvocab_size = 255\n").find("256 tokens") != std::string::npos);
  CHECK(wrong(least + "validation_fraction = 0\n[validation]\nevery = 5\n")
          .find("validation_fraction") != std::string::npos);
  CHECK(wrong("").find("data.path is empty") != std::string::npos);
  CHECK(wrong(least + "[job]\nname = \"../x\"\n").find("job.name") != std::string::npos);
  // A registered model has its own rules.
  CHECK(good(least + "[model]\nkind = \"conv\"\ndim = 100\nheads = 7\n").model.heads == 7);
}

TEST_CASE("the canonical text of a job is that job again", "[config]") {
  auto job = good(least + R"(
[job]
name = "we\"ird\\ name\t\u0001 $${X} $${Y}"
[model]
kind = "conv"
[model.custom]
"two words" = "a\nb"
channels = 16
a.b = "nested"
[training]
max_norm = 0.1
[optimizer]
lr = 1.2345678901234567e-5
eps = 1e-30
[timeouts]
gather = "1234567us"
[nodes]
memory = "1536MiB"
[emulate]
rate = "1.7Mbit/s"
delay = "250us"
[[churn.event]]
at_step = 15
action = "leave"
)",
                  {"data.custom.x=${NOT_A_VARIABLE}"});
  auto text = canonical_text(job);
  auto again = parse_canonical(text);
  INFO(text);
  INFO((again ? "" : again.error().text));
  REQUIRE(again);
  CHECK(canonical_text(*again) == text);
  CHECK(again->name == job.name);
  CHECK(again->model.custom == job.model.custom);
  CHECK(again->data.custom.at("x") == "${NOT_A_VARIABLE}");
  CHECK(again->optimizer.lr == job.optimizer.lr);
  CHECK(again->optimizer.eps == job.optimizer.eps);
  CHECK(again->timeouts.gather == 1234567us);
  CHECK(again->emulate.rate == job.emulate.rate);
  CHECK(again->churn.events.size() == 1);
}

TEST_CASE("each key appears in the canonical text and may be read back alone", "[config]") {
  auto job = good(least);
  for (const auto& k : keys()) {
    INFO(k.name);
    auto line = std::string(k.name) + " = " + k.get(job);
    CHECK(canonical_text(job).find(line + "\n") != std::string::npos);
    CHECK(parse("data.path = \"x\"\n" + (k.name == "data.path" ? "" : line)));
  }
}

TEST_CASE("what --print-config shows can be kept as a job file", "[config]") {
  auto first =
    parse(least + "custom.d = \"a ${DATA} $${Z}\"\n[model]\nkind = \"c\"\ncustom.k = \"$${v}\"\n",
          {"training.steps=50"});
  REQUIRE(first);
  auto shown = print_config(first->job, first->origins);
  CHECK(shown.find("path = \"text.txt\"") != std::string::npos);
  CHECK(shown.find("# job.toml:2:1; a file") != std::string::npos);
  CHECK(shown.find("# command line; optimizer steps") != std::string::npos);
  CHECK(shown.find("# default; ") != std::string::npos);
  CHECK(canonical_text(good(shown)) == canonical_text(first->job));
}

TEST_CASE("recompute is a truth or the planner's, in a file and on a command line", "[config]") {
  using core::recompute_rule;
  for (auto [text, rule] :
       {std::pair{"true", recompute_rule::always}, std::pair{"false", recompute_rule::never},
        std::pair{"\"auto\"", recompute_rule::as_needed}}) {
    auto job = good(least + "[training]\nrecompute = " + text + "\n");
    CHECK(job.training.recompute == rule);
    CHECK(good(canonical_text(job)).training.recompute == rule);
    CHECK(good(least, {std::string("training.recompute=") + text}).training.recompute == rule);
  }
  CHECK(good(least, {"training.recompute=auto"}).training.recompute == recompute_rule::as_needed);
}

TEST_CASE("only keys that decide the bits are in the text of a checkpoint", "[config]") {
  auto text = [](std::vector<std::string> overrides) {
    return bits_text(good(least, std::move(overrides)), 42);
  };
  auto base = text({});
  CHECK(text({"nodes.local=7", "training.recompute=true", "parallelism.schedule=gpipe",
              "data.path=/other", "checkpoint.every=3", "validation.every=5", "job.name=y"}) ==
        base);
  CHECK(text({"training.reduction_leaf=2"}) == base);  // what 0 means here
  for (std::string change : {"job.seed=2", "training.micro_batches=8", "optimizer.lr=0.5",
                             "training.threads=2", "training.steps=99", "model.dropout=0.1",
                             "data.custom.x=1", "model.custom.x=1", "training.reduction_leaf=4"}) {
    INFO(change);
    CHECK(text({change}) != base);
  }
  CHECK(text({"lr_scheduler.decay=constant", "training.steps=99"}) ==
        text({"lr_scheduler.decay=constant"}));
  CHECK(bits_text(good(least), 43) != base);
  CHECK(text_digest(base) != text_digest(text({"job.seed=2"})));
}

TEST_CASE("a job file that cannot be read is an error", "[config]") {
  auto missing = read_job("/nowhere/job.toml", {});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == errc::config);
  CHECK(missing.error().text.find("/nowhere/job.toml: cannot be read") == 0);
  CHECK_FALSE(read_job("/", {}));
}

TEST_CASE("paths of a job that was read from a file are absolute", "[config]") {
  auto path = std::filesystem::temp_directory_path() / "shoal-job-file-test.toml";
  std::ofstream(path) << "[job]\nname = \"n\"\n[data]\npath = \"a/../b.txt\"\n";
  auto read = read_job(path.string(), {});
  std::filesystem::remove(path);
  REQUIRE(read);
  auto here = std::filesystem::current_path().string();
  CHECK(read->job.data.path == here + "/b.txt");
  CHECK(read->job.folder == here + "/runs/n");
  CHECK(read->job.checkpoint.folder == here + "/runs/n/checkpoints");
}

}  // namespace shoal::app
