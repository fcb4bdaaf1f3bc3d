#pragma once
// The one key that is a list: [[churn.event]].

#include "app/config/key.hpp"

namespace shoal::app {

/// {at_step, action = "kill" | "leave" | "join", count = 1}; kept in order of at_step.
key churn_event_key();

}  // namespace shoal::app
