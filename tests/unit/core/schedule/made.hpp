#pragma once
// A plan that must come about.

#include <catch2/catch.hpp>

#include "core/schedule/make_plan.hpp"

namespace shoal::core {

inline pipeline_plan made(const plan_options& options) {
  auto plan = make_plan(options);
  if (!plan) FAIL(plan.error().text);
  return *plan;
}

}  // namespace shoal::core
