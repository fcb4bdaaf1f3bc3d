#include <algorithm>
#include <array>
#include <string>

#include "base/assert.hpp"
#include "base/nearest.hpp"
#include "core/schedule/schedule.hpp"

namespace shoal::core {

namespace {

/// How many micro-batches a stage forwards before its first backward, less one: after these,
/// forward and backward take turns.
using warm_up_rule = std::uint32_t (*)(std::uint32_t stages_after, std::uint32_t micro_batches);

struct named_rule {
  std::string_view name;
  warm_up_rule warm_up;
};

// GPipe's turns are never reached. Eager 1F1B (DAPPLE's second policy) forwards twice as far ahead
// as is needed without a network, and so hides up to half a turn of latency a hop.
constexpr std::array rules{
  named_rule{"gpipe", [](std::uint32_t, std::uint32_t m) { return m; }},
  named_rule{"1f1b", [](std::uint32_t after, std::uint32_t m) { return std::min(m, after); }},
  named_rule{"1f1b-eager",
             [](std::uint32_t after, std::uint32_t m) { return std::min(m, 2 * after); }},
};

const named_rule* find(std::string_view name) {
  auto* rule = std::find_if(rules.begin(), rules.end(), [&](auto& r) { return r.name == name; });
  return rule == rules.end() ? nullptr : rule;
}

error unknown(std::string_view name) {
  std::vector<std::string> names;
  std::string all;
  for (auto& rule : rules) {
    names.emplace_back(rule.name);
    all += (all.empty() ? "\"" : ", \"") + names.back() + "\"";
  }
  return {errc::config, "there is no schedule \"" + std::string(name) + "\"; did you mean \"" +
                          nearest_name(name, names) + "\"? Schedules are " + all + "."};
}

std::vector<stage_action> stage_order(const schedule_options& options, warm_up_rule warm_up,
                                      std::uint32_t stages_after) {
  auto range = options.micro_batches;
  bool recompute = options.recompute && stages_after > 0;
  std::vector<stage_action> order;
  order.reserve(options.validation_micro_batches.size() + range.size() * (recompute ? 3 : 2));
  for (auto g = options.validation_micro_batches.begin; g < options.validation_micro_batches.end;
       ++g)
    order.push_back({action_kind::validate, g});

  auto forward = range.begin;
  auto first_turn = range.begin + warm_up(stages_after, range.size());
  while (forward < first_turn) order.push_back({action_kind::forward, forward++});
  for (auto backward = range.begin; backward < range.end; ++backward) {
    if (forward < range.end) order.push_back({action_kind::forward, forward++});
    if (recompute) order.push_back({action_kind::recompute, backward});
    order.push_back({action_kind::backward, backward});
  }
  return order;
}

}  // namespace

result<schedule> generate(const schedule_options& options) {
  SHOAL_ASSERT(options.stage_count >= 1);
  SHOAL_ASSERT(options.micro_batches.begin <= options.micro_batches.end);
  SHOAL_ASSERT(options.validation_micro_batches.begin <= options.validation_micro_batches.end);
  auto* rule = find(options.name);
  if (rule == nullptr) return unknown(options.name);
  schedule made;
  for (stage_index s = 0; s < options.stage_count; ++s)
    made.stages.push_back(stage_order(options, rule->warm_up, options.stage_count - 1 - s));
  return made;
}

result<std::uint32_t> stash_peak_of(const schedule_options& options, stage_index stage) {
  SHOAL_ASSERT(stage < options.stage_count);
  auto* rule = find(options.name);
  if (rule == nullptr) return unknown(options.name);
  auto count = options.micro_batches.size();
  return std::min(count, rule->warm_up(options.stage_count - 1 - stage, count) + 1);
}

index_range validation_share(std::uint32_t total, replica_index index, std::uint32_t count) {
  SHOAL_ASSERT(index < count);
  auto each = total / count, one_more = total % count;
  auto begin = index * each + std::min(index, one_more);
  return {begin, begin + each + (index < one_more ? 1 : 0)};
}

}  // namespace shoal::core
