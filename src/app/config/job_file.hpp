#pragma once
// Reads a job file (TOML; sections named as in torchtitan 0.2) with overrides from the command
// line.
//
//   file ---toml_text---> entries --+--keys--> job_options --checks--> job
//   --set a.b=c --------> entries --+
//
// Everything that is wrong is told at once (up to ten), each with file:line:column, what was
// expected, and for a name that is no key the nearest one.

#include <map>
#include <string>
#include <vector>

#include "app/config/interpolate.hpp"
#include "app/config/value.hpp"
#include "base/result.hpp"
#include "core/job.hpp"

namespace shoal::app {

/// A job and where its values come from; keys without an origin have their default.
struct job_file {
  core::job_options job;
  std::map<std::string, origin> origins;
};

/// What `parse_job` reads from besides the text.
struct parse_options {
  std::string source = "job.toml";     ///< names the text in messages
  std::vector<std::string> overrides;  ///< "training.steps=50", in order; later ones win
  environment variables = process_environment();
};

/// `errc::config` with one line for each thing that is wrong.
result<job_file> parse_job(std::string_view text, const parse_options& options);

/// Reads the file at `path`, and makes the job's paths absolute from the working directory, with
/// their defaults filled in. `errc::config` also when the file cannot be read.
result<job_file> read_job(const std::string& path, const std::vector<std::string>& overrides);

/// The job of a canonical text, which came from another process: no variables are replaced.
result<core::job_options> parse_canonical(std::string_view text);

}  // namespace shoal::app
