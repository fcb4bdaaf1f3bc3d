#pragma once
// A measured profile as JSON: what `shoal profile` writes and `shoal plan` reads.
//
//   {"profile":1, "model":"gpt2 ...", "model_digest":"5ce1...", "device":"...", "dtype":"float32",
//    "threads":1, "micro_batch_size":4,
//    "blocks":[{"name":"h.0", "forward":{"s":0.0041,"confidence":0.01,"samples":12}, ...,
//               "parameter_bytes":..., "state_bytes":..., "stash_bytes":..., "boundary_bytes":...,
//               "workspace_bytes":...}, ...],
//    "links":[{"bytes":4096, "one_way":{"s":...}}, ...],
//    "pairs":[{"from":"10.0.0.1", "to":"10.0.0.2:4711", "messages":[as in links]}, ...]}
//
// `pairs` may be missing.

#include <string>

#include "base/result.hpp"
#include "core/job.hpp"
#include "core/plan/model_profile.hpp"

namespace shoal::app {

std::string profile_json(const core::model_profile& profile);

/// Reads what `profile_json` wrote, at most 16 MiB of it. `errc::config` with the JSON path, what
/// was expected there and what was found: unknown and missing keys, wrong types, numbers that are
/// negative, not finite or absurd. That it is of the right job is for `core::check` to say.
result<core::model_profile> parse_profile_json(const std::string& text);

/// Reads a file; errors name it. `errc::io`.
result<core::model_profile> read_profile(const std::string& path);

/// What a profile must be of for this job.
core::profile_subject subject_of(const core::job_options& job, const std::string& job_file);

}  // namespace shoal::app
