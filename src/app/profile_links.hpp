#pragma once
// Links between machines, for `shoal profile`: one answers, the others ask. And how links are
// shown.

#include <cstdint>
#include <string>
#include <vector>

#include "app/config/options.hpp"
#include "base/result.hpp"
#include "base/robust_mean.hpp"
#include "core/job.hpp"
#include "core/plan/model_profile.hpp"

namespace shoal::app {

/// A measurement in the profile's form.
core::measured_time time_of(const robust_value& measured);

/// Both ways to each peer, one peer after the other; stops at the first that cannot be measured.
/// `job_digest` is what the peers must have too. Errors as transport::probe_peer.
result<std::vector<core::link_pair>> probe_peers(const std::vector<address>& peers,
                                                 const core::job_options& job,
                                                 std::uint64_t job_digest);

/// Answers at `options.answer` for `options.answer_for`, or until SIGINT or SIGTERM, and tells on
/// stdout who asked. Call it while the process has one thread. `errc::port_in_use`, `config`.
result<void> answer_probes(const profile_options& options, const core::job_options& job,
                           std::uint64_t job_digest);

/// "4 B 21 us  4 KiB 25 us  ...", one way.
std::string text_of(const std::vector<core::message_time>& messages);

/// A line a pair.
std::string text_of(const std::vector<core::link_pair>& pairs);

}  // namespace shoal::app
