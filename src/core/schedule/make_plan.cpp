#include "core/schedule/make_plan.hpp"

#include <algorithm>
#include <array>

#include "base/nearest.hpp"
#include "core/schedule/families.hpp"

namespace shoal::core {

namespace {

/// What a schedule takes beside ranks and micro-batches.
enum use : unsigned {
  nothing = 0,
  warm_up = 1,
  chunks = 2,
  group = 4,
  recompute = 8,
  batches = 16,
  costs = 32,
  replicas = 64,
  live_max = 128,
  two_chunks = 256,
};

struct family {
  std::string_view name;
  result<pipeline_plan> (*make)(const plan_options&);
  unsigned uses;
};

constexpr std::array families_by_name{
  family{"gpipe", families::turns, recompute},
  family{"1f1b", families::turns, recompute | warm_up},
  family{"1f1b-eager", families::turns, recompute},
  family{"looped-bfs", families::looped_bfs, recompute | chunks},
  family{"interleaved-1f1b", families::interleaved, recompute | chunks | group},
  family{"varuna", families::varuna, recompute | costs | live_max},
  family{"varuna-static", families::varuna, recompute | costs},
  family{"pipedream", families::pipedream, recompute | replicas},
  family{"pipedream-sync", families::pipedream, recompute | replicas},
  family{"pipedream-2bw", families::double_buffered, recompute | batches},
  family{"zb-h1", families::zero_bubble_h, recompute},
  family{"zb-h2", families::zero_bubble_h, recompute},
  family{"zb-v", families::zero_bubble_v, two_chunks | recompute},
  family{"dualpipe", families::dualpipe, nothing},
  family{"dualpipe-v", families::dualpipe, two_chunks},
  family{"chimera", families::chimera, recompute | costs},
};

error unused(const plan_options& options, const char* setting) {
  return {errc::config,
          "schedule \"" + options.name + "\" has no use for \"" + setting + "\"; leave it out."};
}

result<void> check_uses(const plan_options& options, unsigned uses) {
  if (!options.warm_up.empty() && !(uses & warm_up)) return unused(options, "warm_up");
  if (options.group != 0 && !(uses & group)) return unused(options, "group");
  if (options.recompute && !(uses & recompute)) return unused(options, "recompute");
  if (options.batches != 1 && !(uses & batches)) return unused(options, "batches");
  if (!options.costs.empty() && !(uses & costs)) return unused(options, "costs");
  if (!options.replicas.empty() && !(uses & replicas)) return unused(options, "replicas");
  if (options.live_max != none && !(uses & live_max)) return unused(options, "live_max");
  auto exactly = (uses & two_chunks) ? 2u : 1u;
  if (options.chunks != 0 && options.chunks != exactly && !(uses & chunks))
    return families::illegal(options, "chunks a rank", options.chunks,
                             "its placement has " + std::to_string(exactly), 0, exactly);
  return {};
}

result<void> check_range(const plan_options& options, const char* what, std::uint32_t value,
                         std::uint32_t most) {
  if (value >= 1 && value <= most) return {};
  return families::illegal(options, what, value, "1 to " + std::to_string(most) + " can be planned",
                           0, value < 1 ? 1 : most);
}

result<void> check_costs(const plan_options& options) {
  if (options.costs.empty()) return {};
  if (options.costs.size() != options.ranks)
    return families::illegal(options, "costs", static_cast<std::uint32_t>(options.costs.size()),
                             "costs are given for each rank, or not at all", 0, options.ranks);
  for (auto& c : options.costs)
    for (auto value : {c.forward, c.backward, c.recompute, c.input_gradient, c.weight_gradient})
      TRY_VOID(check_range(options, "units of a cost", value, cell_cost_max));
  return {};
}

result<void> check_sizes(const plan_options& options) {
  TRY_VOID(check_range(options, "ranks", options.ranks, plan_ranks_max));
  TRY_VOID(check_range(options, "micro-batches", options.micro_batches, plan_micro_batches_max));
  TRY_VOID(check_range(options, "batches", options.batches,
                       plan_micro_batches_max / options.micro_batches));
  auto chunk_count = std::max(options.chunks, 2u);
  TRY_VOID(check_range(options, "chunks a rank", chunk_count,
                       std::max(2u, plan_stages_max / options.ranks)));
  // Five cells for each micro-batch and stage at most.
  auto cells = std::uint64_t{5} * options.ranks * chunk_count * options.micro_batches;
  if (cells * options.batches > plan_cells_max)
    return families::illegal(
      options, "micro-batches", options.micro_batches, "the plan would be too long", 0,
      static_cast<std::uint32_t>(std::max<std::uint64_t>(
        1, plan_cells_max * options.micro_batches / (cells * options.batches))));
  return check_costs(options);
}

}  // namespace

const std::vector<std::string>& plan_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (auto& f : families_by_name) all.emplace_back(f.name);
    return all;
  }();
  return names;
}

result<pipeline_plan> make_plan(const plan_options& options) {
  auto found = std::find_if(families_by_name.begin(), families_by_name.end(),
                            [&](auto& f) { return f.name == options.name; });
  if (found == families_by_name.end()) {
    std::string all;
    for (auto& name : plan_names()) all += (all.empty() ? "\"" : ", \"") + name + "\"";
    auto name = options.name.substr(0, 64);
    return {errc::config, "there is no schedule \"" + name + "\"; did you mean \"" +
                            nearest_name(name, plan_names()) + "\"? Schedules are " + all + "."};
  }
  TRY_VOID(check_uses(options, found->uses));
  TRY_VOID(check_sizes(options));
  return found->make(options);
}

namespace families {

pipeline_plan empty_plan(const plan_options& options) {
  pipeline_plan plan;
  plan.name = options.name;
  plan.micro_batches = options.micro_batches;
  plan.ranks.resize(options.ranks);
  return plan;
}

std::vector<rank_index> linear_placement(std::uint32_t ranks) { return looped_placement(ranks, 1); }

std::vector<rank_index> looped_placement(std::uint32_t ranks, std::uint32_t chunk_count) {
  std::vector<rank_index> placement;
  for (virtual_stage s = 0; s < ranks * chunk_count; ++s) placement.push_back(s % ranks);
  return placement;
}

std::vector<rank_index> v_placement(std::uint32_t ranks) {
  std::vector<rank_index> placement;
  for (virtual_stage s = 0; s < 2 * ranks; ++s) placement.push_back(std::min(s, 2 * ranks - 1 - s));
  return placement;
}

std::vector<std::vector<rank_index>> opposite_placement(std::uint32_t ranks) {
  auto down = linear_placement(ranks);
  return {down, {down.rbegin(), down.rend()}};
}

void append_backward(pipeline_plan& plan, rank_index r, virtual_stage s, micro_batch_index m,
                     bool recompute) {
  if (recompute && s + 1 < plan.stage_count())
    plan.ranks[r].push_back({operation::recompute, s, m});
  plan.ranks[r].push_back({operation::backward, s, m});
}

error illegal(const plan_options& options, const char* what, std::uint32_t value,
              const std::string& why, std::uint32_t below, std::uint32_t above) {
  auto text = "schedule \"" + options.name + "\" cannot run with " + std::to_string(value) + " " +
              what + ": " + why + "; the nearest legal number is ";
  if (below != 0 && below != above) text += std::to_string(below) + " or ";
  return {errc::config, text + std::to_string(above) + "."};
}

}  // namespace families

}  // namespace shoal::core
