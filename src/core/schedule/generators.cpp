#include <algorithm>
#include <string>

#include "base/assert.hpp"
#include "base/nearest.hpp"
#include "core/schedule/schedule.hpp"
#include "core/schedule/warm_up.hpp"

namespace shoal::core {

namespace {

error unknown(std::string_view name) {
  std::vector<std::string> names;
  std::string all;
  for (auto& rule : named_warm_ups()) {
    names.emplace_back(rule.name);
    all += (all.empty() ? "\"" : ", \"") + names.back() + "\"";
  }
  return {errc::config, "there is no schedule \"" + std::string(name) + "\"; did you mean \"" +
                          nearest_name(name, names) + "\"? Schedules are " + all + "."};
}

std::vector<stage_action> order_of_stage(const schedule_options& options, warm_up_rule warm_up,
                                         std::uint32_t stages_after) {
  auto range = options.micro_batches;
  bool recompute = options.recompute && stages_after > 0;
  std::vector<stage_action> order;
  order.reserve(options.validation_micro_batches.size() + range.size() * (recompute ? 3 : 2));
  for (auto g = options.validation_micro_batches.begin; g < options.validation_micro_batches.end;
       ++g)
    order.push_back({action_kind::validate, g});

  take_turns(
    warm_up(stages_after, range.size()), range.size(),
    [&](std::uint32_t k) {
      order.push_back({action_kind::forward, range.begin + k});
    },
    [&](std::uint32_t k) {
      if (recompute) order.push_back({action_kind::recompute, range.begin + k});
      order.push_back({action_kind::backward, range.begin + k});
    });
  return order;
}

}  // namespace

result<schedule> generate(const schedule_options& options) {
  SHOAL_ASSERT(options.stage_count >= 1);
  SHOAL_ASSERT(options.micro_batches.begin <= options.micro_batches.end);
  SHOAL_ASSERT(options.validation_micro_batches.begin <= options.validation_micro_batches.end);
  auto warm_up = find_warm_up(options.name);
  if (warm_up == nullptr) return unknown(options.name);
  schedule made;
  for (stage_index s = 0; s < options.stage_count; ++s)
    made.stages.push_back(order_of_stage(options, warm_up, options.stage_count - 1 - s));
  return made;
}

result<std::uint32_t> stash_peak_of(const schedule_options& options, stage_index stage) {
  SHOAL_ASSERT(stage < options.stage_count);
  auto warm_up = find_warm_up(options.name);
  if (warm_up == nullptr) return unknown(options.name);
  auto count = options.micro_batches.size();
  return std::min(count, warm_up(options.stage_count - 1 - stage, count) + 1);
}

std::string_view schedule_of(const layout& shape, const job_options& job) {
  if (shape.order != stage_order::as_job) return to_string(shape.order);
  return job.parallelism.schedule == "auto" ? "1f1b" : std::string_view(job.parallelism.schedule);
}

index_range validation_share(std::uint32_t total, replica_index index, std::uint32_t count) {
  SHOAL_ASSERT(index < count);
  auto each = total / count, one_more = total % count;
  auto begin = index * each + std::min(index, one_more);
  return {begin, begin + each + (index < one_more ? 1 : 0)};
}

}  // namespace shoal::core
