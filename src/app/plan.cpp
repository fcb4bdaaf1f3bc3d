// `shoal plan`: the layout that so many nodes would get, from a profile or from estimates. Nothing
// is started.

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/commands.hpp"
#include "app/node_kinds.hpp"
#include "app/profile_json.hpp"
#include "app/profile_links.hpp"
#include "base/units.hpp"
#include "core/plan/grid_search.hpp"
#include "core/plan/grid_simulate.hpp"
#include "core/plan/losses.hpp"
#include "core/plan/plan.hpp"
#include "telemetry/words.hpp"
#include "torch/registry.hpp"

namespace shoal::app {

namespace {

// The planner of layouts looks at every node; beyond so many only grids are searched.
constexpr std::uint32_t layout_nodes_max = 4096;
// A layout of more is not read by anyone; the JSON has it.
constexpr std::uint32_t layout_nodes_shown = 32;

struct costs_found {
  core::plan_profile profile;
  std::string source;
  std::string link;                    // whose figures the plan counts on
  std::vector<core::link_pair> pairs;  // all that were measured
};

std::string link_of(const core::model_profile& measured) {
  auto* slowest = core::slowest_pair(measured);
  if (slowest == nullptr)
    return measured.links.empty()
             ? "estimated, none was measured"
             : "loopback of that machine; `shoal profile --peer` measures others";
  return "the slowest of " + std::to_string(measured.pairs.size()) + " measured, " + slowest->from +
         " to " + slowest->to;
}

std::string rate_text(double bytes_per_s) {
  if (bytes_per_s <= 0) return "no limit";
  char text[48];
  std::snprintf(text, sizeof text, "%.4g MB/s", bytes_per_s / 1e6);
  return text;
}

result<costs_found> find_costs(const plan_options& options, const core::job_options& job,
                               const chain& model) {
  costs_found found;
  if (options.profile.empty()) {
    found.profile = engine::first_profile(model, job);
    found.source = "estimates (no --profile)";
    found.link = job.emulate.rate.bytes_per_s > 0 ? "as the job emulates it" : "estimated";
  } else {
    TRY(auto measured, read_profile(options.profile));
    TRY_VOID(core::check(measured, subject_of(job, options.job.path)));
    found.profile = core::planning_form(measured);
    found.source = options.profile + ", measured on " + measured.device;
    found.link = link_of(measured);
    found.pairs = std::move(measured.pairs);
  }
  return found;
}

result<std::uint64_t> memory_of(const plan_options& options, const core::job_options& job) {
  if (options.memory.empty()) return job.nodes.memory.value;
  auto parsed = parse_bytes(options.memory);
  if (!parsed) return in("--memory", parsed.error());
  return parsed->value;
}

/// What grids may run: what the job names, or all where it leaves the choice (or names Varuna's
/// order, which grids do not know).
std::vector<core::stage_order> orders_of(const core::parallelism_options& p) {
  auto named = core::stage_order_of(p.schedule);
  if (named != core::stage_order::as_job && named != core::stage_order::varuna) return {named};
  std::vector<core::stage_order> orders(core::stage_orders.begin(), core::stage_orders.end());
  std::erase_if(orders, [&](auto order) {
    return order == core::stage_order::varuna ||
           (order == core::stage_order::interleaved && p.chunks == 1);
  });
  return orders;
}

core::grid_request request_of(const plan_options& options, const core::job_options& job,
                              const core::plan_profile& profile, const node_kind& kind) {
  core::grid_request request;
  request.profiles = {{job.training.micro_batch_size, profile}};
  request.samples = job.training.micro_batches * job.training.micro_batch_size;
  request.nodes = kind.count;
  request.memory_bytes = kind.memory_bytes;
  request.depth = job.parallelism.depth;
  request.schedules = orders_of(job.parallelism);
  request.chunks_max = job.parallelism.chunks == 0 ? 2 : job.parallelism.chunks;
  request.may_recompute = job.training.recompute != core::recompute_rule::never;
  request.price_per_hour = options.price_per_hour;
  request.mean_life = job.nodes.mean_life;
  request.redone_steps = core::planning::redone_steps(job);
  request.simulate = core::simulated_seconds;
  return request;
}

nlohmann::ordered_json json_of(const core::grid_plan& g) {
  return {{"depth", g.depth},
          {"replicas", g.replicas},
          {"micro_batches", g.micro_batches},
          {"schedule", core::to_string(g.schedule)},
          {"step_s", g.step_s},
          {"exchange_s", g.exchange_s},
          {"bubble", g.bubble},
          {"stage_bytes_max", g.stage_bytes_max},
          {"score", g.score}};
}

/// What was found; either may be missing: layouts are for some thousand nodes, grids for like ones.
struct answer {
  std::uint32_t nodes = 0;
  std::optional<core::plan_result> layout;
  std::optional<core::grid_choice> grids;
  std::string no_grid;  // why there is none, where nodes are alike
};

void tell(const plan_options& options, const costs_found& costs, const answer& found) {
  auto& [node_count, chosen, grids, no_grid] = found;
  auto seconds = [](core::nanoseconds t) { return std::chrono::duration<double>(t).count(); };
  if (options.json) {
    nlohmann::ordered_json line{{"nodes", node_count},
                                {"costs", costs.source},
                                {"link",
                                 {{"of", costs.link},
                                  {"latency_s", seconds(costs.profile.link_latency)},
                                  {"bytes_per_s", costs.profile.link_bytes_per_s},
                                  {"pairs", costs.pairs.size()}}}};
    if (chosen)
      line["layout"] = {{"text", core::text_of(chosen->shape)},
                        {"step_s", seconds(chosen->step_expected)},
                        {"spares", chosen->spares.size()},
                        {"reason", chosen->reason}};
    if (grids) {
      line["grid"] = json_of(grids->best);
      line["next"] = nlohmann::ordered_json::array();
      for (auto& g : grids->next) line["next"].push_back(json_of(g));
      line["reason"] = grids->reason;
    }
    if (!no_grid.empty()) line["no_grid"] = no_grid;
    std::puts(line.dump().c_str());
    return;
  }
  std::printf("costs: %s\n", costs.source.c_str());
  std::fputs(text_of(costs.pairs).c_str(), stdout);
  std::printf("link: %s; %s and %s\n", costs.link.c_str(),
              shoal::text_of(costs.profile.link_latency).c_str(),
              rate_text(costs.profile.link_bytes_per_s).c_str());
  if (chosen)
    std::printf("layout, as a running job would get it: %s\n  %s\n",
                telemetry::short_layout(chosen->shape).c_str(), chosen->reason.c_str());
  if (chosen && node_count <= layout_nodes_shown)
    std::printf("  %s\n", core::text_of(chosen->shape).c_str());
  if (grids) std::printf("grids of equal nodes:\n%s\n", grids->reason.c_str());
  if (!no_grid.empty()) std::printf("grids of equal nodes: %s\n", no_grid.c_str());
}

}  // namespace

result<void> plan(const plan_options& options, const job_file& file, const trainer& mine) {
  const auto& job = file.job;
  TRY(auto memory_bytes, memory_of(options, job));
  TRY(auto kinds, node_kinds_of(options, memory_bytes));
  TRY(auto model, engine::make_model(mine, job.model));
  TRY(auto costs, find_costs(options, job, model));
  answer found{.nodes = node_count_of(kinds)};
  if (kinds.size() > 1 && found.nodes > layout_nodes_max)
    return error{errc::usage, std::to_string(found.nodes) + " nodes of several kinds; at most " +
                                std::to_string(layout_nodes_max) +
                                " can be planned for, or any number of one kind"};
  if (found.nodes <= layout_nodes_max) {
    TRY(found.layout, core::plan(costs.profile, nodes_of(kinds), {}, job));
  }
  if (kinds.size() == 1) {
    auto grids = core::search_grids(request_of(options, job, costs.profile, kinds[0]));
    // A grid keeps more memory free than a layout does: that one may fit where no grid does.
    if (grids)
      found.grids = std::move(*grids);
    else if (found.layout)
      found.no_grid = grids.error().text;
    else
      return grids.error();
  }
  tell(options, costs, found);
  return {};
}

}  // namespace shoal::app
