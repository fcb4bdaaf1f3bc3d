#pragma once
// A job as text again: for nodes, for checkpoints, for people.

#include <cstdint>
#include <map>
#include <string>

#include "app/config/value.hpp"
#include "core/job.hpp"

namespace shoal::app {

/// Every key as "name = value", one a line, in a fixed order. `parse_canonical` of it gives the
/// same job.
std::string canonical_text(const core::job_options& job);

/// Only the keys that decide the bits of the weights: two jobs with the same text (and data) train
/// the same weights. `data_fingerprint` is that of the data set.
std::string bits_text(const core::job_options& job, std::uint64_t data_fingerprint);

/// A 64-bit digest of a text, stable for ever.
std::uint64_t text_digest(const std::string& text);

/// A job file that says the same, with the help and the origin of each value beside it.
std::string print_config(const core::job_options& job,
                         const std::map<std::string, origin>& origins);

}  // namespace shoal::app
