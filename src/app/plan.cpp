// `shoal plan`: the layout that so many nodes would get, from a profile or from estimates. Nothing
// is started.

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/commands.hpp"
#include "app/profile_json.hpp"
#include "app/profile_links.hpp"
#include "base/units.hpp"
#include "core/plan/grid_search.hpp"
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

core::grid_request request_of(const plan_options& options, const core::job_options& job,
                              const core::plan_profile& profile, std::uint64_t memory_bytes) {
  core::grid_request request;
  request.profiles = {{job.training.micro_batch_size, profile}};
  request.samples = job.training.micro_batches * job.training.micro_batch_size;
  request.nodes = options.nodes;
  request.memory_bytes = memory_bytes;
  request.depth = job.parallelism.depth;
  request.may_recompute = job.training.recompute;
  request.price_per_hour = options.price_per_hour;
  request.mean_life = job.nodes.mean_life;
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

void tell(const plan_options& options, const costs_found& costs,
          const std::optional<core::plan_result>& chosen, const core::grid_choice& grids) {
  auto seconds = [](core::nanoseconds t) { return std::chrono::duration<double>(t).count(); };
  if (options.json) {
    auto next = nlohmann::ordered_json::array();
    for (auto& g : grids.next) next.push_back(json_of(g));
    nlohmann::ordered_json line{{"nodes", options.nodes},
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
    line["grid"] = json_of(grids.best);
    line["next"] = next;
    line["reason"] = grids.reason;
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
  if (chosen && options.nodes <= layout_nodes_shown)
    std::printf("  %s\n", core::text_of(chosen->shape).c_str());
  std::printf("grids of equal nodes:\n%s\n", grids.reason.c_str());
}

}  // namespace

result<void> plan(const plan_options& options, const job_file& file, const trainer& mine) {
  const auto& job = file.job;
  TRY(auto model, engine::make_model(mine, job.model));
  TRY(auto costs, find_costs(options, job, model));
  TRY(auto memory_bytes, memory_of(options, job));
  std::optional<core::plan_result> chosen;
  if (options.nodes <= layout_nodes_max) {
    std::vector<core::plan_node> nodes;
    for (std::uint32_t n = 1; n <= options.nodes; ++n)
      nodes.push_back({.node = {n}, .memory_bytes = memory_bytes});
    TRY(chosen, core::plan(costs.profile, nodes, {}, job));
  }
  TRY(auto grids, core::search_grids(request_of(options, job, costs.profile, memory_bytes)));
  tell(options, costs, chosen, grids);
  return {};
}

}  // namespace shoal::app
