#pragma once
// What must hold between keys.

#include <string>
#include <vector>

#include "core/job.hpp"

namespace shoal::app {

/// A rule that a job breaks.
struct complaint {
  std::string key;  ///< the one to point at
  std::string text;
};

/// All broken rules. Models and data that a trainer registered are only checked where that makes
/// sense for every model.
std::vector<complaint> check_job(const core::job_options& job);

}  // namespace shoal::app
