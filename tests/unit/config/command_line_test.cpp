#include "app/config/command_line.hpp"

#include <catch2/catch.hpp>
#include <set>

namespace shoal::app {

namespace {

result<command> parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "shoal");
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}

template <class Options>
Options good(std::vector<const char*> arguments) {
  auto parsed = parse(std::move(arguments));
  INFO((parsed ? "" : parsed.error().text));
  REQUIRE(parsed);
  REQUIRE(std::holds_alternative<Options>(*parsed));
  return std::get<Options>(*parsed);
}

std::string wrong(std::vector<const char*> arguments, errc code = errc::usage) {
  auto parsed = parse(std::move(arguments));
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().code == code);
  return parsed.error().text;
}

}  // namespace

TEST_CASE("run takes a job file and any number of overrides, in any order", "[config]") {
  auto run = good<run_options>({"run", "--set", "training.steps=5", "job.toml", "--set",
                                "churn.event=[{at_step=1,action=\"kill\"}]", "--quiet", "--json"});
  CHECK(run.job.path == "job.toml");
  CHECK(run.job.overrides ==
        std::vector<std::string>{"training.steps=5", "churn.event=[{at_step=1,action=\"kill\"}]"});
  CHECK(run.output.quiet);
  CHECK(run.output.json);
  CHECK_FALSE(run.insecure);
  CHECK_FALSE(run.job.print_config);
  CHECK(good<supervisor_options>({"supervisor", "j.toml", "--insecure"}).insecure);
  CHECK(good<reference_options>({"reference", "j.toml", "--print-config"}).job.print_config);
  CHECK(good<validate_options>({"validate", "j.toml"}).job.path == "j.toml");
}

TEST_CASE("a node needs an address to join", "[config]") {
  auto node = good<node_options>({"node", "--join", "127.0.0.1:4711"});
  CHECK(node.join.host == "127.0.0.1");
  CHECK(node.join.port == 4711);
  CHECK(good<node_options>({"node", "--join", "[::1]:4711"}).join.host == "::1");
  CHECK(wrong({"node"}).find("--join is required") != std::string::npos);
  for (auto* text : {"localhost:1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536",
                     "127.0.0.1:1x", ":1", "::1:4711", "", "[]:1"})
    CHECK(wrong({"node", "--join", text}).find("is not an address") != std::string::npos);
}

TEST_CASE("an address that others can reach is refused without --insecure", "[config]") {
  for (auto* text : {"10.0.0.5:4711", "0.0.0.0:4711", "[2001:db8::1]:4711", "[::]:4711"}) {
    CHECK(wrong({"node", "--join", text}, errc::config).find("not authenticated") !=
          std::string::npos);
    CHECK(good<node_options>({"node", "--join", text, "--insecure"}).insecure);
  }
  CHECK(
    wrong({"node", "--join", "127.0.0.1:1", "--host", "0.0.0.0"}, errc::config).find("--host") ==
    0);
  CHECK(check_host("127.3.2.1", false, "network.host"));
  CHECK(
    check_host("localhost", true, "network.host").error().text.find("network.host 'localhost'") ==
    0);
}

TEST_CASE("status and leave find a job by address or by its file", "[config]") {
  auto status = good<status_options>({"status", "127.0.0.1:4711", "--json"});
  REQUIRE(status.whom.at);
  CHECK(status.whom.at->port == 4711);
  CHECK(status.json);
  auto by_file = good<status_options>({"status", "job.toml", "--set", "job.folder=/x"});
  CHECK_FALSE(by_file.whom.at);
  CHECK(by_file.whom.job.path == "job.toml");
  CHECK(by_file.whom.job.overrides.size() == 1);
  CHECK(wrong({"status", "host:4711"}).find("is not an address") != std::string::npos);
  CHECK(good<leave_options>({"leave", "job.toml", "--node", "3"}).node == 3);
  CHECK(wrong({"leave", "job.toml"}).find("--node is required") != std::string::npos);
}

TEST_CASE("sim, digest and version read theirs", "[config]") {
  auto sim = good<sim_options>({"sim", "--seed", "7", "--count", "1000"});
  CHECK(sim.seed == 7);
  CHECK(sim.count == 1000);
  CHECK(wrong({"sim", "--seed", "x"}).find("--seed") != std::string::npos);
  CHECK(wrong({"sim", "--seed", "1", "--count", "0"}).find("--count") != std::string::npos);
  CHECK(good<digest_options>({"digest", "runs/x", "--json"}).path == "runs/x");
  CHECK(good<version_options>({"version", "--json"}).json);
  CHECK_FALSE(good<version_options>({"--version"}).json);
}

TEST_CASE("profile takes a job and a file to write", "[config]") {
  auto options = good<profile_options>(
    {"profile", "job.toml", "--set", "training.threads=2", "-o", "p.json", "--dry-run"});
  CHECK(options.job.path == "job.toml");
  CHECK(options.job.overrides.size() == 1);
  CHECK(options.output == "p.json");
  CHECK(options.dry_run);
  CHECK_FALSE(options.json);
  CHECK(wrong({"profile"}).find("JOB is required") != std::string::npos);
}

TEST_CASE("profile asks peers, or answers them", "[config]") {
  auto options = good<profile_options>(
    {"profile", "job.toml", "--peer", "127.0.0.1:4711", "--peer", "[::1]:4712", "-o", "p.json"});
  REQUIRE(options.peers.size() == 2);
  CHECK(options.peers[0].port == 4711);
  CHECK(options.peers[1].host == "::1");
  CHECK_FALSE(options.answer);

  auto answer = good<profile_options>({"profile", "job.toml", "--answer", "127.0.0.1:4711"});
  REQUIRE(answer.answer);
  CHECK(answer.answer->port == 4711);
  CHECK(answer.answer_for == std::chrono::minutes(10));
  answer =
    good<profile_options>({"profile", "job.toml", "--answer", "127.0.0.1:4711", "--for", "30s"});
  CHECK(answer.answer_for == std::chrono::seconds(30));

  CHECK_FALSE(wrong({"profile", "job.toml", "--for", "30s"}).empty());
  CHECK_FALSE(wrong({"profile", "job.toml", "--answer", "127.0.0.1:1", "--json"}).empty());
  CHECK_FALSE(
    wrong({"profile", "job.toml", "--answer", "127.0.0.1:1", "--peer", "127.0.0.1:2"}).empty());
  for (auto* time : {"soon", "25h", "10"})
    CHECK(wrong({"profile", "job.toml", "--answer", "127.0.0.1:1", "--for", time}).find("--for") !=
          std::string::npos);
  CHECK(wrong({"profile", "job.toml", "--peer", "there"}).find("is not an address") !=
        std::string::npos);
  for (auto* key : {"--peer", "--answer"}) {
    CHECK(wrong({"profile", "job.toml", key, "10.0.0.5:4711"}, errc::config).find(key) == 0);
    CHECK(
      good<profile_options>({"profile", "job.toml", key, "10.0.0.5:4711", "--insecure"}).job.path ==
      "job.toml");
  }
}

TEST_CASE("plan needs a number of nodes", "[config]") {
  auto options = good<plan_options>({"plan", "job.toml", "-n", "12", "--profile", "p.json",
                                     "--memory", "16GiB", "--price", "0.5", "--json"});
  CHECK(options.job.path == "job.toml");
  CHECK(options.nodes == 12);
  CHECK(options.profile == "p.json");
  CHECK(options.memory == "16GiB");
  CHECK(options.price_per_hour == 0.5);
  CHECK(options.json);
  CHECK_FALSE(wrong({"plan", "job.toml", "-n", "0"}).empty());
}

TEST_CASE("simulate reads a scenario and where pictures go", "[config]") {
  auto options = good<simulate_options>(
    {"simulate", "s.json", "--draw", "--svg", "s.svg", "--trace", "t.json", "--json"});
  CHECK(options.path == "s.json");
  CHECK(options.draw);
  CHECK(options.json);
  CHECK(options.svg == "s.svg");
  CHECK(options.trace == "t.json");
  CHECK(wrong({"simulate"}).find("SCENARIO is required") != std::string::npos);
}

TEST_CASE("schedule reads sizes, lists and one form", "[config]") {
  auto picture = good<schedule_options>({"schedule", "1f1b", "-p", "4", "-m", "8", "--draw"});
  CHECK(picture.what == "1f1b");
  CHECK(picture.ranks == 4);
  CHECK(picture.micro_batches == 8);
  CHECK(picture.form == schedule_form::picture);
  CHECK_FALSE(picture.lower);
  auto table = good<schedule_options>(
    {"schedule", "1f1b", "-p", "3", "-m", "8", "--warm-up", "3,2,1", "--lower", "--csv"});
  CHECK(table.warm_up == std::vector<std::uint32_t>{3, 2, 1});
  CHECK(table.form == schedule_form::csv);
  CHECK(table.lower);
  CHECK(good<schedule_options>({"schedule", "x.csv"}).form == schedule_form::figures);
  CHECK(wrong({"schedule"}).find("NAME is required") != std::string::npos);
  CHECK_FALSE(wrong({"schedule", "1f1b", "--csv", "--draw"}).empty());
}

TEST_CASE("what cannot be understood is an error that points to the help", "[config]") {
  CHECK(wrong({}).find("a subcommand is missing") == 0);
  CHECK(wrong({"trian", "job.toml"}).find("`shoal --help` shows how") != std::string::npos);
  CHECK(wrong({"run"}).find("JOB is required") != std::string::npos);
  CHECK(wrong({"run", "a.toml", "b.toml"}).find("b.toml") != std::string::npos);
  CHECK(wrong({"run", "a.toml", "--set"}).find("--set") != std::string::npos);
  CHECK(wrong({"run", "a.toml", "--fast"}).find("--fast") != std::string::npos);
}

TEST_CASE("help lists the subcommands and every exit code", "[config]") {
  auto help = good<help_options>({"--help"}).text;
  for (auto* name : {"run", "supervisor", "node", "reference", "status", "leave", "digest",
                     "validate", "sim", "version"})
    CHECK(help.find(std::string("\n  ") + name) != std::string::npos);
  CHECK(good<help_options>({"run", "--help"}).text.find("--set") != std::string::npos);
  std::set<int> codes{0};
  for (int c = 0; c <= static_cast<int>(errc::internal); ++c)
    codes.insert(exit_code(static_cast<errc>(c)));
  auto text = exit_code_help();
  for (int code : codes) {
    INFO("exit code " << code);
    auto padded = std::to_string(code);
    padded.insert(0, 4 - padded.size(), ' ');
    CHECK(text.find("\n" + padded + "  ") != std::string::npos);
  }
  CHECK(std::count(text.begin(), text.end(), '\n') == static_cast<std::ptrdiff_t>(codes.size()));
}

}  // namespace shoal::app
