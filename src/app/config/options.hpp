#pragma once
// What a command line asks for. One struct a subcommand; `command_line.hpp` fills them in, the
// functions of `commands.hpp` do them.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace shoal::app {

/// A job file and the changes to it.
struct job_source {
  std::string path;
  std::vector<std::string> overrides;  ///< "training.steps=50"
  bool print_config = false;           ///< show the job that comes out, and do nothing else
};

/// How much to say.
struct output_options {
  bool quiet = false;  ///< errors only
  bool json = false;   ///< the result as one last line of JSON
};

/// Where a supervisor or node listens. The host is a literal address.
struct address {
  std::string host;
  std::uint16_t port = 0;
};

struct run_options {
  job_source job;
  output_options output;
  bool insecure = false;  ///< other addresses than this machine's own are allowed
};
struct supervisor_options {
  job_source job;
  output_options output;
  bool insecure = false;
};
struct node_options {
  address join;                    ///< the supervisor
  std::string host = "127.0.0.1";  ///< to listen on
  bool quiet = false;
  bool insecure = false;
};
struct reference_options {
  job_source job;
  output_options output;
};

/// A running job, by the address of its supervisor or by its job file.
struct target {
  std::optional<address> at;
  job_source job;  ///< when there is no address
};
struct status_options {
  target whom;
  bool json = false;
};
struct leave_options {
  target whom;
  std::uint64_t node = 0;
  bool json = false;
};

struct digest_options {
  std::string
    path;  ///< a checkpoint, a folder of checkpoints (the newest counts), or a job's folder
  bool json = false;
};
struct validate_options {
  job_source job;
  bool json = false;
};
struct sim_options {
  std::uint64_t seed = 0;
  std::uint64_t count = 1;
  bool trace = false;  ///< tell every event of a single seed
  bool json = false;
};
struct profile_options {
  job_source job;
  std::string output;             ///< a file for the JSON; empty: none
  bool json = false;              ///< the JSON as the last line, and no table
  bool dry_run = false;           ///< say what would be measured and written
  std::vector<address> peers;     ///< measure the links to these too
  std::optional<address> answer;  ///< only answer probes, here
  std::chrono::nanoseconds answer_for = std::chrono::minutes(10);
  bool insecure = false;  ///< other addresses than this machine's own are allowed
};
struct plan_options {
  job_source job;
  std::uint32_t nodes = 0;         ///< all alike; 0: as `kinds` say
  std::vector<std::string> kinds;  ///< "8,speed=0.5,memory=16GiB"; see node_kinds.hpp
  std::string memory;              ///< of each node, "16GiB"; empty: nodes.memory, or no limit
  std::string profile;             ///< a file that `shoal profile` wrote; empty: estimates
  double price_per_hour = 0;       ///< of a node; above 0 grids are compared by money
  bool json = false;
};
struct simulate_options {
  std::string path;   ///< the scenario
  bool json = false;  ///< figures as one line of JSON
  bool draw = false;  ///< a picture for the terminal
  std::string svg;    ///< a file for the picture; empty: none
  std::string trace;  ///< a file for Chrome's or Perfetto's trace viewer; empty: none
};
/// How a schedule is shown.
enum class schedule_form : std::uint8_t {
  figures,  ///< what each rank holds, and what is to be warned of
  text,     ///< the cells of each rank
  picture,  ///< `draw`
  csv,      ///< as torch.distributed.pipelining reads it
  json,     ///< the figures
};
struct schedule_options {
  std::string what;  ///< a name, or a CSV file
  std::uint32_t ranks = 0, micro_batches = 0;
  std::uint32_t chunks = 0, group = 0, batches = 1, live_max = 0;  ///< 0: the schedule's own
  std::vector<std::uint32_t> warm_up, replicas;
  bool recompute = false;
  bool lower = false;  ///< with sends, receives, reductions, optimizer
  schedule_form form = schedule_form::figures;
};
struct version_options {
  bool json = false;
};
/// A text to print, and nothing to do: --help.
struct help_options {
  std::string text;
};

using command =
  std::variant<help_options, run_options, supervisor_options, node_options, reference_options,
               status_options, leave_options, digest_options, validate_options, sim_options,
               profile_options, plan_options, simulate_options, schedule_options, version_options>;

}  // namespace shoal::app
