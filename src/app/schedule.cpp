// `shoal schedule`: pipeline schedules by name or from a table, checked and shown. Nothing is run.

#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/commands.hpp"
#include "app/text_file.hpp"
#include "core/schedule/lower.hpp"
#include "core/schedule/make_plan.hpp"
#include "core/schedule/text.hpp"
#include "core/schedule/validate_plan.hpp"
#include "telemetry/words.hpp"

namespace shoal::app {

namespace {

bool is_file(const std::string& what) {
  return what.ends_with(".csv") || what.find('/') != std::string::npos;
}

result<core::pipeline_plan> read(const std::string& path) {
  TRY(auto text, read_text(path, core::csv_bytes_max, "expected a table of cells, a row a rank"));
  auto plan = core::parse_csv(text);
  if (!plan) return in(path, plan.error());
  return plan;
}

result<core::pipeline_plan> make(const schedule_options& options) {
  if (options.ranks == 0 || options.micro_batches == 0)
    return {errc::usage,
            "a schedule by name needs its depth and its micro-batches: `shoal schedule " +
              options.what + " -p 4 -m 8`"};
  return core::make_plan({.name = options.what,
                          .ranks = options.ranks,
                          .chunks = options.chunks,
                          .micro_batches = options.micro_batches,
                          .warm_up = options.warm_up,
                          .replicas = options.replicas,
                          .group = options.group,
                          .recompute = options.recompute,
                          .batches = options.batches,
                          .live_max = options.live_max == 0 ? core::none : options.live_max});
}

void print_figures(const core::pipeline_plan& plan, const core::validation& facts) {
  std::printf("%s: %u ranks, %u virtual stages, %u micro-batches, weights %s, hash %s\n",
              plan.name.c_str(), plan.rank_count(), plan.stage_count(), plan.micro_batches,
              std::string(core::to_string(plan.weights)).c_str(),
              telemetry::hex_digest(facts.hash).c_str());
  std::printf("%6s %8s %8s %10s %9s\n", "rank", "cells", "warm-up", "live peak", "versions");
  for (core::rank_index r = 0; r < plan.rank_count(); ++r) {
    auto& rank = facts.ranks[r];
    std::printf("%6u %8zu %8u %10u %9u\n", r, plan.ranks[r].size(), rank.warm_up, rank.live_peak,
                rank.versions_peak);
  }
  for (auto& warning : facts.warnings) std::printf("warning: %s\n", warning.c_str());
}

void print_json(const core::pipeline_plan& plan, const core::validation& facts) {
  auto ranks = nlohmann::ordered_json::array();
  for (core::rank_index r = 0; r < plan.rank_count(); ++r)
    ranks.push_back({{"cells", plan.ranks[r].size()},
                     {"warm_up", facts.ranks[r].warm_up},
                     {"live_peak", facts.ranks[r].live_peak},
                     {"versions_peak", facts.ranks[r].versions_peak}});
  nlohmann::ordered_json line{{"schedule", plan.name},
                              {"virtual_stages", plan.stage_count()},
                              {"micro_batches", plan.micro_batches},
                              {"weights", core::to_string(plan.weights)},
                              {"executable", facts.executable},
                              {"hash", telemetry::hex_digest(facts.hash)},
                              {"ranks", ranks},
                              {"warnings", facts.warnings}};
  std::puts(line.dump().c_str());
}

}  // namespace

result<void> schedule(const schedule_options& options) {
  TRY(auto plan, is_file(options.what) ? read(options.what) : make(options));
  if (options.lower) {
    TRY(plan, core::lower(plan));
  }
  TRY(auto facts, core::validate_plan(plan));
  switch (options.form) {
    case schedule_form::figures:
      print_figures(plan, facts);
      break;
    case schedule_form::json:
      print_json(plan, facts);
      break;
    case schedule_form::csv:
      std::fputs(core::csv_of(plan).c_str(), stdout);
      break;
    case schedule_form::text:
      for (auto& rank : plan.ranks) std::puts(core::text_of(rank).c_str());
      break;
    case schedule_form::picture: {
      TRY(auto picture, core::draw(plan));
      std::fputs(picture.c_str(), stdout);
      break;
    }
  }
  return {};
}

}  // namespace shoal::app
