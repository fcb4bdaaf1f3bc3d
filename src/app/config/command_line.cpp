#include "app/config/command_line.hpp"

#include <arpa/inet.h>

#include <CLI/CLI.hpp>

#include <charconv>

#include "base/units.hpp"

namespace shoal::app {

namespace {

constexpr auto answer_for_max = std::chrono::hours(24);

// What CLI11 fills in; it becomes a `command` once everything is read.
struct parsed {
  job_source job;
  output_options output;
  bool insecure = false;
  std::string join, host = "127.0.0.1", whom, path;
  std::vector<std::string> peers;
  std::string answer, answer_for = "10min";
  std::uint64_t node = 0, seed = 0, count = 1;
  bool trace = false, version = false;
  schedule_options schedule;
  profile_options profile;
  plan_options plan;
  simulate_options simulate;
};

void add_schedule(CLI::App* to, schedule_options& s) {
  to->add_option("NAME", s.what,
                 "a name (1f1b, gpipe, interleaved-1f1b, zb-h1, ...), or a CSV file")
    ->required();
  to->add_option("--ranks,-p", s.ranks, "pipeline depth");
  to->add_option("--micro-batches,-m", s.micro_batches, "of a batch");
  to->add_option("--chunks,-v", s.chunks, "virtual stages a rank");
  to->add_option("--group", s.group, "interleaved-1f1b: micro-batches that walk together");
  to->add_option("--batches", s.batches, "pipedream-2bw: how many batches");
  to->add_option("--warm-up", s.warm_up, "1f1b: forwards before the first backward, one a rank")
    ->delimiter(',');
  to->add_option("--replicas", s.replicas, "pipedream: ranks of each stage")->delimiter(',');
  to->add_option("--live-max", s.live_max, "varuna: micro-batches that a rank may hold");
  to->add_flag("--recompute", s.recompute, "forward again before each backward");
  to->add_flag("--lower", s.lower, "with sends, receives, reductions and the optimizer");
  auto* form = to->add_option_group("form", "what is shown; the figures by default");
  auto show = [&](const char* flag, schedule_form f, const char* what) {
    form->add_flag_callback(
      flag, [&s, f] { s.form = f; }, what);
  };
  show("--text", schedule_form::text, "the cells of each rank");
  show("--draw", schedule_form::picture, "a picture");
  show("--csv", schedule_form::csv, "a table as torch.distributed.pipelining has it");
  show("--json", schedule_form::json, "the figures as one line of JSON");
  form->require_option(0, 1);
}

void add_job(CLI::App* to, parsed& p, bool required = true) {
  auto* file = to->add_option("JOB", p.job.path, "the job file (TOML)");
  if (required) file->required();
  to->add_option("--set", p.job.overrides, "KEY=VALUE: beats the file, as in training.steps=50")
    ->allow_extra_args(false);
}

void add_print_config(CLI::App* to, parsed& p) {
  to->add_flag("--print-config", p.job.print_config, "show every key with its origin, and stop");
}

void add_output(CLI::App* to, parsed& p) {
  to->add_flag("--quiet,-q", p.output.quiet, "errors only");
  to->add_flag("--json", p.output.json, "the result as a last line of JSON");
}

void add_insecure(CLI::App* to, parsed& p) {
  to->add_flag(
    "--insecure", p.insecure,
    "allow addresses that other machines can reach, although peers are not authenticated");
}

void add_target(CLI::App* to, parsed& p) {
  to->add_option("JOB", p.whom, "HOST:PORT of a supervisor, or the file of a job that runs here")
    ->required();
  to->add_option("--set", p.job.overrides, "KEY=VALUE, as given to run: job.folder finds the job")
    ->allow_extra_args(false);
  to->add_flag("--json", p.output.json, "as one line of JSON");
}

void add_profile(CLI::App* to, parsed& p) {
  add_job(to, p);
  auto* output = to->add_option("--output,-o", p.profile.output, "write the JSON into this file");
  auto* json = to->add_flag("--json", p.output.json, "as one line of JSON");
  auto* dry_run = to->add_flag("--dry-run", p.profile.dry_run,
                               "say what would be measured and written, and stop");
  auto* peers =
    to->add_option("--peer", p.peers,
                   "HOST:PORT where --answer runs: measure the link to it, both ways; repeatable")
      ->allow_extra_args(false);
  auto* answer = to->add_option("--answer", p.answer,
                                "HOST:PORT of this machine: answer the probes of others, only that")
                   ->excludes(output, json, dry_run, peers);
  to->add_option("--for", p.answer_for, "how long --answer answers")
    ->needs(answer)
    ->capture_default_str();
  add_insecure(to, p);
  to->footer(
    "Links between machines: run it with --answer on some, and with --peer on the others. What is\n"
    "measured is round trips of this machine with each peer; peers do not probe one another: for\n"
    "their links, run it there. A peer serves one machine at a time. [emulate] applies.");
}

void add_plan(CLI::App* to, parsed& p) {
  add_job(to, p);
  to->add_option("--nodes,-n", p.plan.nodes, "how many nodes, all alike")
    ->check(CLI::Range(1, 1'000'000));
  to->add_option("--kind", p.plan.kinds,
                 "COUNT[,speed=SHARE][,memory=SIZE]: so many nodes of a kind; once for each kind")
    ->allow_extra_args(false);
  to->add_option("--memory", p.plan.memory, "of each node, as in 16GiB");
  to->add_option("--profile", p.plan.profile, "what `shoal profile` wrote; else estimates");
  to->add_option("--price", p.plan.price_per_hour, "of a node-hour: compare grids by money")
    ->check(CLI::NonNegativeNumber);
  to->add_flag("--json", p.output.json, "as one line of JSON");
}

void add_simulate(CLI::App* to, simulate_options& s) {
  to->add_option("SCENARIO", s.path, "costs, links and schedule (JSON; see configs/scenarios)")
    ->required();
  to->add_flag("--json", s.json, "the figures as one line of JSON");
  to->add_flag("--draw", s.draw, "a picture of the step");
  to->add_option("--svg", s.svg, "write the picture into this file");
  to->add_option("--trace", s.trace, "write a trace for Chrome or Perfetto into this file");
}

void add_commands(CLI::App& app, parsed& p) {
  app.description(
    "shoal trains one model on machines that come and go; the weights stay the same, bit for bit");
  app.footer(exit_code_help());
  app.add_flag("--version", p.version, "what this program was built from");

  auto* run = app.add_subcommand("run", "train with a supervisor and local nodes");
  auto* supervisor = app.add_subcommand("supervisor", "wait for nodes, and lead them");
  for (auto* c : {run, supervisor}) {
    add_job(c, p);
    add_print_config(c, p);
    add_output(c, p);
    add_insecure(c, p);
  }
  auto* node = app.add_subcommand("node", "join a supervisor and work");
  node->add_option("--join", p.join, "HOST:PORT of the supervisor")->required();
  node->add_option("--host", p.host, "address to listen on")->capture_default_str();
  node->add_flag("--quiet,-q", p.output.quiet, "errors only");
  add_insecure(node, p);
  auto* reference =
    app.add_subcommand("reference", "train in this process alone: what every run must equal");
  add_job(reference, p);
  add_print_config(reference, p);
  add_output(reference, p);
  add_target(app.add_subcommand("status", "how a job is doing"), p);
  auto* leave = app.add_subcommand("leave", "ask a node to go; its blocks are moved first");
  add_target(leave, p);
  leave->add_option("--node", p.node, "its number, as status shows it")->required();
  auto* digest =
    app.add_subcommand("digest", "check a checkpoint and show the digests of its weights");
  digest
    ->add_option("FOLDER", p.path, "a checkpoint, a folder of them (the newest), or a job's folder")
    ->required();
  digest->add_flag("--json", p.output.json, "as one line of JSON");
  auto* validate = app.add_subcommand("validate", "check a job file, its model and its data");
  add_job(validate, p);
  add_print_config(validate, p);
  validate->add_flag("--json", p.output.json, "as one line of JSON");
  auto* sim = app.add_subcommand("sim", "run the machines of a job under simulated faults");
  sim->add_option("--seed", p.seed, "the first seed; a seed replays exactly")->required();
  sim->add_option("--count", p.count, "how many seeds")->check(CLI::Range(1, 10'000'000));
  sim->add_flag("--trace", p.trace, "tell every event; for one seed");
  sim->add_flag("--json", p.output.json, "as one line of JSON");
  add_profile(app.add_subcommand("profile", "measure blocks on this machine, and links to others"),
              p);
  add_plan(app.add_subcommand("plan", "the layout that a number of nodes would get, and why"), p);
  add_simulate(app.add_subcommand("simulate", "how long a schedule would take, without running it"),
               p.simulate);
  add_schedule(app.add_subcommand("schedule", "make, check and show a pipeline schedule"),
               p.schedule);
  app.add_subcommand("version", "what this program was built from")
    ->add_flag("--json", p.output.json, "as one line of JSON");
}

result<target> target_of(const parsed& p) {
  target out;
  auto at = parse_address(p.whom);
  if (at) {
    out.at = *at;
    return out;
  }
  // host:port with something wrong in it is told as such, anything else is a file.
  auto colon = p.whom.rfind(':');
  bool meant = colon != std::string::npos && colon + 1 < p.whom.size() &&
               p.whom.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  if (meant) return at.error();
  out.job = p.job;
  out.job.path = p.whom;
  return out;
}

/// A command that has its own options filled in, but not yet those that many share.
template <class Options>
result<command> on_job(Options options, const parsed& p) {
  options.job = p.job;
  options.json = p.output.json;
  return command(options);
}

result<command> profile_of(const parsed& p) {
  auto options = p.profile;
  for (auto& peer : p.peers) {
    TRY(auto at, parse_address(peer));
    TRY_VOID(check_host(at.host, p.insecure, "--peer"));
    options.peers.push_back(at);
  }
  if (!p.answer.empty()) {
    TRY(options.answer, parse_address(p.answer));
    TRY_VOID(check_host(options.answer->host, p.insecure, "--answer"));
  }
  auto time = parse_duration(p.answer_for);
  if (!time) return error{errc::usage, "--for: " + time.error().text};
  if (*time > answer_for_max)
    return error{errc::usage, "--for: " + p.answer_for + " is too long; at most 24h, then again"};
  options.answer_for = *time;
  options.insecure = p.insecure;
  return on_job(std::move(options), p);
}

result<command> command_of(const std::string& name, const parsed& p) {
  if (name == "run") return command(run_options{p.job, p.output, p.insecure});
  if (name == "supervisor") return command(supervisor_options{p.job, p.output, p.insecure});
  if (name == "reference") return command(reference_options{p.job, p.output});
  if (name == "digest") return command(digest_options{p.path, p.output.json});
  if (name == "validate") return command(validate_options{p.job, p.output.json});
  if (name == "sim") return command(sim_options{p.seed, p.count, p.trace, p.output.json});
  if (name == "profile") return profile_of(p);
  if (name == "plan") return on_job(p.plan, p);
  if (name == "simulate") return command(p.simulate);
  if (name == "schedule") return command(p.schedule);
  if (name == "version") return command(version_options{p.output.json});
  if (name == "node") {
    TRY(auto join, parse_address(p.join));
    TRY_VOID(check_host(join.host, p.insecure, "--join"));
    TRY_VOID(check_host(p.host, p.insecure, "--host"));
    return command(node_options{join, p.host, p.output.quiet, p.insecure});
  }
  TRY(auto whom, target_of(p));
  if (name == "status") return command(status_options{whom, p.output.json});
  SHOAL_ASSERT(name == "leave");
  return command(leave_options{whom, p.node, p.output.json});
}

}  // namespace

result<command> parse_command_line(int argc, const char* const* argv) {
  CLI::App app;
  parsed p;
  app.name("shoal");
  add_commands(app, p);
  app.require_subcommand(0, 1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    auto chosen = app.get_subcommands();
    return command(help_options{chosen.empty() ? app.help() : chosen.front()->help()});
  } catch (const CLI::ParseError& wrong) {
    return {errc::usage, std::string(wrong.what()) + "; `shoal --help` shows how"};
  }
  if (p.version) return command(version_options{p.output.json});
  auto chosen = app.get_subcommands();
  if (chosen.empty()) return {errc::usage, "a subcommand is missing; `shoal --help` shows them"};
  return command_of(chosen.front()->get_name(), p);
}

result<address> parse_address(const std::string& text) {
  error wrong{errc::usage, "'" + text + "' is not an address: expected HOST:PORT with a literal " +
                             "address, as in 127.0.0.1:4711 or [::1]:4711"};
  auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return wrong;
  address out;
  out.host = text.substr(0, colon);
  if (out.host.front() == '[' && out.host.back() == ']')
    out.host = out.host.substr(1, out.host.size() - 2);
  else if (out.host.find(':') != std::string::npos)
    return wrong;
  auto* begin = text.data() + colon + 1;
  auto* end = text.data() + text.size();
  auto read = std::from_chars(begin, end, out.port);
  if (read.ec != std::errc{} || read.ptr != end || out.port == 0) return wrong;
  in_addr four{};
  in6_addr six{};
  if (::inet_pton(AF_INET, out.host.c_str(), &four) != 1 &&
      ::inet_pton(AF_INET6, out.host.c_str(), &six) != 1)
    return wrong;
  return out;
}

result<void> check_host(const std::string& host, bool insecure, const std::string& key) {
  in_addr four{};
  in6_addr six{};
  bool is_four = ::inet_pton(AF_INET, host.c_str(), &four) == 1;
  bool is_six = ::inet_pton(AF_INET6, host.c_str(), &six) == 1;
  if (!is_four && !is_six)
    return {
      errc::config,
      key + " '" + host + "' is not a literal address such as 127.0.0.1; names are not looked up"};
  bool loopback = is_four ? ntohl(four.s_addr) >> 24 == 127 : IN6_IS_ADDR_LOOPBACK(&six) != 0;
  if (loopback || insecure) return {};
  return {errc::config,
          key + " " + host + " can be reached by other machines, and peers are not " +
            "authenticated yet: whoever reaches the port can join and read the job. Use " +
            "127.0.0.1, or --insecure on a network that you trust"};
}

std::string exit_code_help() {
  return "Exit codes:\n"
         "   0  done\n"
         "   2  the command line is wrong\n"
         "   3  the job file is wrong\n"
         "   4  the training data are missing, short, or not what the job says\n"
         "  10  it does not fit: memory, disk space or permissions\n"
         "  11  a port is in use\n"
         "  12  a peer refused, or broke the protocol\n"
         "  20  too few nodes\n"
         "  21  no progress: the same step failed again and again\n"
         "  22  a loss or gradient was not finite, and the job says stop\n"
         "  30  a checkpoint is damaged, foreign, or none can be used\n"
         "  40  asked to go (Ctrl-C, SIGTERM); the job can be resumed\n"
         "  70  a bug in shoal\n"
         "  74  the disk failed\n"
         "  75  nobody answered, or too late; try again";
}

}  // namespace shoal::app
