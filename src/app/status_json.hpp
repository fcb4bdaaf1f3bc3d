#pragma once
// A supervisor's state as `shoal status --json` gives it, and as people read it.

#include <string>

#include <nlohmann/json.hpp>

#include "core/job.hpp"
#include "core/morph/supervisor_io.hpp"
#include "core/plan/plan.hpp"

namespace shoal::app {

nlohmann::ordered_json status_json(const core::supervisor_status& status,
                                   const core::job_options& job, const core::plan_profile& profile);

/// The same as a few lines.
std::string status_text(const nlohmann::ordered_json& status);

}  // namespace shoal::app
