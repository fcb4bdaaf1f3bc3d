#pragma once
// Pipeline schedules as a library: made by name, read and written as text, checked, lowered.
//
//   auto plan = shoal::core::make_plan({.name = "1f1b", .ranks = 4, .micro_batches = 8});
//   if (!plan) return plan.error();
//   auto facts = shoal::core::validate_plan(*plan);      sixteen rules; what each rank holds
//   auto lists = shoal::core::lower(*plan);              with sends, receives, reductions, OPT
//   std::puts(shoal::core::csv_of(*lists).c_str());      as torch.distributed.pipelining reads it
//
// Pure: no clock, thread, file, torch or actor. Link shoal::core.

#include "core/schedule/lower.hpp"
#include "core/schedule/make_plan.hpp"
#include "core/schedule/plan_hash.hpp"
#include "core/schedule/text.hpp"
#include "core/schedule/validate_plan.hpp"
