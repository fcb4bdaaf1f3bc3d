#include "core/schedule/schedule.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/nearest.hpp"
#include "core/schedule/make_plan.hpp"
#include "core/schedule/warm_up.hpp"

namespace shoal::core {

namespace {

error unknown(std::string_view name) {
  std::vector<std::string> names;
  std::string all;
  for (auto order : stage_orders) {
    names.emplace_back(to_string(order));
    all += (all.empty() ? "\"" : ", \"") + names.back() + "\"";
  }
  return {errc::config, "there is no schedule \"" + std::string(name) + "\"; did you mean \"" +
                          nearest_name(name, names) + "\"? Schedules are " + all + "."};
}

bool does_recompute(const schedule_options& options, stage_index stage) {
  return !options.recompute.empty() && options.recompute[stage];
}

result<stage_order> order_of(const schedule_options& options) {
  auto order = stage_order_of(options.name);
  if (order == stage_order::as_job) return unknown(options.name);
  if (options.chunks != 1 && order != stage_order::interleaved)
    return {errc::config, "schedule \"" + std::string(options.name) +
                            "\" runs 1 chunk a stage, not " + std::to_string(options.chunks) +
                            "; \"interleaved-1f1b\" is for several."};
  auto last = options.stage_count - 1;
  for (stage_index s = 0; order == stage_order::varuna && s < last; ++s)
    if (!does_recompute(options, s))
      return {errc::config,
              "schedule \"varuna\" is an order of forward, recompute and backward passes; it needs "
              "recompute = true."};
  return order;
}

/// How many micro-batches go together through the chunks: as many as there are stages, or the
/// least above that leave no smaller group at the end.
std::uint32_t group_of(std::uint32_t stages, std::uint32_t micro_batches) {
  auto group = stages;
  while (micro_batches % group != 0 && micro_batches % group < stages) ++group;
  return group;
}

/// With fewer micro-batches than stages there is nothing to interleave: chunk after chunk.
bool chunk_by_chunk(const schedule_options& options) {
  return options.micro_batches.size() < options.stage_count;
}

action_kind kind_of(operation what) {
  switch (what) {
    case operation::forward:
      return action_kind::forward;
    case operation::recompute:
      return action_kind::recompute;
    default:
      SHOAL_ASSERT(what == operation::backward);
      return action_kind::backward;
  }
}

}  // namespace

result<pipeline_plan> plan_of(const schedule_options& options) {
  TRY(auto order, order_of(options));
  plan_options wanted{
    .name = std::string(options.name),
    .ranks = options.stage_count,
    .micro_batches = options.micro_batches.size(),
    .recompute = std::ranges::find(options.recompute, true) != options.recompute.end()};
  if (order == stage_order::searched) {
    wanted.name = "1f1b";
    wanted.warm_up = options.ahead;
  }
  if (order == stage_order::interleaved) {
    if (options.chunks == 1) {
      wanted.name = "1f1b";
    } else if (chunk_by_chunk(options)) {
      wanted.name = "looped-bfs";
      wanted.chunks = options.chunks;
    } else {
      wanted.chunks = options.chunks;
      wanted.group = group_of(options.stage_count, wanted.micro_batches);
    }
  }
  TRY(auto plan, make_plan(wanted));
  for (stage_index s = 0; s < options.stage_count; ++s)
    if (!does_recompute(options, s))
      std::erase_if(plan.ranks[s], [](auto& c) { return c.what == operation::recompute; });
  return plan;
}

result<schedule> generate(const schedule_options& options) {
  SHOAL_ASSERT(options.stage_count >= 1 && options.chunks >= 1);
  SHOAL_ASSERT(options.micro_batches.begin <= options.micro_batches.end);
  SHOAL_ASSERT(options.validation_micro_batches.begin <= options.validation_micro_batches.end);
  SHOAL_ASSERT(options.ahead.empty() || options.ahead.size() == options.stage_count);
  SHOAL_ASSERT(options.recompute.empty() || options.recompute.size() == options.stage_count);
  TRY(auto order, order_of(options));
  schedule made;
  made.stages.resize(options.stage_count);
  auto validated = options.validation_micro_batches;
  for (auto& stage : made.stages)
    for (std::uint32_t c = 0; c < options.chunks; ++c)
      for (auto g = validated.begin; g < validated.end; ++g)
        stage.push_back({action_kind::validate, g, c});
  if (order == stage_order::varuna) {
    made.opportunistic = true;
    made.live_max = options.ahead;
    if (made.live_max.empty()) made.live_max.assign(options.stage_count, none);
  }
  if (options.micro_batches.size() == 0) return made;
  TRY(auto plan, plan_of(options));
  for (stage_index s = 0; s < options.stage_count; ++s)
    for (auto& c : plan.ranks[s])
      made.stages[s].push_back({kind_of(c.what), options.micro_batches.begin + c.micro_batch,
                                c.stage / options.stage_count});
  return made;
}

result<std::vector<std::uint32_t>> stash_peaks_of(const schedule_options& options) {
  TRY(auto order, order_of(options));
  auto stages = options.stage_count, count = options.micro_batches.size();
  std::vector<std::uint32_t> peaks(stages);
  auto set = [&](auto peak) {
    for (stage_index s = 0; s < stages; ++s) peaks[s] = peak(s, stages - 1 - s);
  };
  if (order == stage_order::varuna) {
    // A full pipeline holds three for each stage that follows (F, R and B of unit costs), and no
    // more is pulled ahead than `ahead` allows.
    set([&](stage_index s, stage_index after) {
      auto listed = std::max(1u, 3 * after);
      return std::min(count, options.ahead.empty() ? none : std::max(listed, options.ahead[s]));
    });
  } else if (order == stage_order::interleaved && options.chunks > 1) {
    auto all = options.chunks * count;
    bool apart = chunk_by_chunk(options);
    auto before = apart ? 0 : (options.chunks - 1) * group_of(stages, count);
    set([&](stage_index, stage_index after) {
      return apart ? all : std::min(all, 2 * after + before + 1);
    });
  } else if (order == stage_order::searched && !options.ahead.empty()) {
    set([&](stage_index s, stage_index) { return std::min(count, options.ahead[s] + 1); });
  } else {
    bool plain = order == stage_order::gpipe || order == stage_order::eager;
    auto warm_up = find_warm_up(plain ? options.name : "1f1b");
    set([&](stage_index, stage_index after) { return std::min(count, warm_up(after, count) + 1); });
  }
  return peaks;
}

std::string text_of(const std::vector<stage_action>& stage) {
  constexpr std::string_view letters = "VFRB";
  std::string text;
  for (auto action : stage) {
    if (!text.empty()) text += ' ';
    text += letters[static_cast<std::size_t>(action.kind)] + std::to_string(action.micro_batch);
    if (action.chunk != 0) text += "." + std::to_string(action.chunk);
  }
  return text;
}

std::string_view schedule_of(const layout& shape, const job_options& job) {
  if (shape.order != stage_order::as_job) return to_string(shape.order);
  return job.parallelism.schedule == "auto" ? "1f1b" : std::string_view(job.parallelism.schedule);
}

bool recomputes(const stage& s, const job_options& job) {
  auto rule = job.training.recompute;
  return rule == recompute_rule::always || (rule == recompute_rule::as_needed && s.recompute);
}

schedule_options schedule_options_of(const layout& shape, replica_index index,
                                     const job_options& job) {
  auto& chain = shape.replicas[index];
  std::vector<bool> again;
  for (auto& s : chain.stages) again.push_back(recomputes(s, job));
  return {.name = schedule_of(shape, job),
          .stage_count = static_cast<stage_index>(chain.stages.size()),
          .micro_batches = chain.micro_batches,
          .recompute = std::move(again),
          .chunks = chain.chunk_count(),
          .ahead = chain.ahead};
}

result<void> check_order(const layout& shape, replica_index index, const job_options& job,
                         errc code) {
  auto plan = plan_of(schedule_options_of(shape, index, job));
  if (!plan) return {code, "layout \"" + text_of(shape) + "\": " + plan.error().text};
  return {};
}

index_range validation_share(std::uint32_t total, replica_index index, std::uint32_t count) {
  SHOAL_ASSERT(index < count);
  auto each = total / count, one_more = total % count;
  auto begin = index * each + std::min(index, one_more);
  return {begin, begin + each + (index < one_more ? 1 : 0)};
}

}  // namespace shoal::core
