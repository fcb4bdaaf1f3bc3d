// From the command line to the function that does it, and from its error to the exit code.

#include <cstdio>
#include <exception>
#include <type_traits>

#include "app/commands.hpp"
#include "app/config/command_line.hpp"
#include "app/config/job_text.hpp"
#include "shoal/trainer.hpp"

namespace shoal {

namespace app {

namespace {

// A command on a job: reads the file, or shows what comes out.
template <class Command, class Options>
result<void> with_job(Command&& command, const Options& options, const trainer& mine) {
  TRY(auto file, read_job(options.job.path, options.job.overrides));
  if (options.job.print_config) {
    std::fputs(print_config(file.job, file.origins).c_str(), stdout);
    return {};
  }
  return command(options, file, mine);
}

// One line a command: what it is called with.
struct dispatcher {
  const trainer& mine;

  result<void> operator()(const help_options& o) const {
    std::puts(o.text.c_str());
    return {};
  }
  result<void> operator()(const version_options& o) const {
    version(o);
    return {};
  }
  result<void> operator()(const run_options& o) const { return with_job(run, o, mine); }
  result<void> operator()(const supervisor_options& o) const {
    return with_job(supervise, o, mine);
  }
  result<void> operator()(const reference_options& o) const { return with_job(reference, o, mine); }
  result<void> operator()(const validate_options& o) const { return with_job(validate, o, mine); }
  result<void> operator()(const node_options& o) const { return node(o, mine); }
  result<void> operator()(const status_options& o) const { return status(o); }
  result<void> operator()(const leave_options& o) const { return leave(o); }
  result<void> operator()(const digest_options& o) const { return digest(o); }
  result<void> operator()(const sim_options& o) const { return sim(o); }
  result<void> operator()(const profile_options& o) const { return with_job(profile, o, mine); }
  result<void> operator()(const plan_options& o) const { return with_job(plan, o, mine); }
  result<void> operator()(const simulate_options& o) const { return simulate(o); }
  result<void> operator()(const schedule_options& o) const { return schedule(o); }
};

result<void> perform(int argc, char** argv, const trainer& mine) {
  TRY(auto chosen, parse_command_line(argc, argv));
  return std::visit(dispatcher{mine}, chosen);
}

int finish(const result<void>& done) {
  std::fflush(stdout);
  if (done) return 0;
  std::fprintf(stderr, "shoal: %s\n", done.error().text.c_str());
  return exit_code(done.error().code);
}

}  // namespace

}  // namespace app

int main(int argc, char** argv, const trainer& mine) {
  // What a library throws stops at our adapters; what comes through is a bug of ours.
  try {
    return app::finish(app::perform(argc, argv, mine));
  } catch (const std::exception& e) {
    return app::finish(error{errc::internal, std::string("a bug, please report it: ") + e.what()});
  }
}

}  // namespace shoal
