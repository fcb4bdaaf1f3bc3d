// `shoal simulate`: how long a schedule would take, without running it.

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/commands.hpp"
#include "app/scenario.hpp"
#include "app/text_file.hpp"
#include "base/units.hpp"
#include "core/pipeline/timeline.hpp"

namespace shoal::app {

namespace {

using json = nlohmann::ordered_json;

double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string time_text(std::int64_t ns) { return shoal::text_of(std::chrono::nanoseconds(ns)); }

json json_of(const core::rank_simulation& r) {
  return {{"busy_s", seconds(r.busy_ns)},
          {"first_s", seconds(r.first_ns)},
          {"last_s", seconds(r.last_ns)},
          {"live_peak", r.live_peak},
          {"bytes_peak", r.bytes_peak}};
}

void print_json(const scenario& what, const core::simulation& s) {
  auto replicas = json::array();
  for (auto& ranks : s.replicas) {
    auto& one = replicas.emplace_back(json::array());
    for (auto& r : ranks) one.push_back(json_of(r));
  }
  json line{{"schedule", what.plan.name},
            {"step_s", seconds(s.makespan_ns)},
            {"pipeline_s", seconds(s.pipeline_ns)},
            {"exposed_reduction_s", seconds(s.exposed_reduction_ns)},
            {"bubble_of_ideal", s.bubble_of_ideal()},
            {"bubble_of_makespan", s.bubble_of_makespan()},
            {"events", s.events},
            {"replicas", replicas}};
  std::puts(line.dump().c_str());
}

void print_table(const scenario& what, const core::simulation& s) {
  std::printf("%s, %u ranks, %u micro-batches, %u replica%s\n", what.plan.name.c_str(),
              what.plan.rank_count(), what.plan.micro_batches, what.replicas,
              what.replicas == 1 ? "" : "s");
  std::printf(
    "step %s: pipeline %s, gradients %s beyond it; bubble %.1f %% of the makespan, %.1f %% "
    "of the ideal\n",
    time_text(s.makespan_ns).c_str(), time_text(s.pipeline_ns).c_str(),
    time_text(s.exposed_reduction_ns).c_str(), 100 * s.bubble_of_makespan(),
    100 * s.bubble_of_ideal());
  std::printf("%6s %12s %12s %10s %12s\n", "rank", "busy", "last cell", "live peak", "bytes peak");
  auto& ranks = s.replicas[0];
  for (std::size_t r = 0; r < ranks.size(); ++r)
    std::printf("%6zu %12s %12s %10u %12s\n", r, time_text(ranks[r].busy_ns).c_str(),
                time_text(ranks[r].last_ns).c_str(), ranks[r].live_peak,
                text_of(byte_count{ranks[r].bytes_peak}).c_str());
}

result<void> write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  if (file) return {};
  return {errc::io, path + ": cannot be written; check folder, permission and space"};
}

}  // namespace

result<void> simulate(const simulate_options& options) {
  TRY(auto text, read_text(options.path, scenario_bytes_max, "expected a scenario (JSON)"));
  auto what = parse_scenario(text);
  if (!what) return in(options.path, what.error());
  bool timeline = options.draw || !options.svg.empty() || !options.trace.empty();
  auto done = run_scenario(*what, timeline);
  if (!done) return in(options.path, done.error());
  if (!options.svg.empty()) TRY_VOID(write(options.svg, core::svg_of(*done)));
  if (!options.trace.empty()) TRY_VOID(write(options.trace, core::trace_of(*done)));
  if (options.draw) std::fputs(core::picture_of(*done).c_str(), stdout);
  if (options.json)
    print_json(*what, *done);
  else if (!options.draw)
    print_table(*what, *done);
  return {};
}

}  // namespace shoal::app
