#include "app/scenario.hpp"

#include "app/json_reader.hpp"
#include "core/schedule/make_plan.hpp"
#include "core/schedule/text.hpp"
#include "core/schedule/validate_plan.hpp"

namespace shoal::app {

namespace {

using json = json_reader::json;

constexpr std::uint32_t replicas_max = 1024;

/// An optional key: leaves `into` as it is when the key is not there.
template <class T, class Get>
result<void> maybe(const json_reader& at, const char* key, T& into, Get get) {
  if (!at.has(key)) return {};
  auto read = get(key);
  if (!read) return read.error();
  into = static_cast<T>(*read);
  return {};
}

result<void> maybe_time(const json_reader& at, const char* key, std::int64_t& into_ns) {
  if (!at.has(key)) return {};
  TRY(auto time, at.duration(key));
  into_ns = time.count();
  return {};
}

result<void> maybe_whole(const json_reader& at, const char* key, std::uint32_t& into,
                         std::uint32_t max) {
  return maybe(at, key, into, [&](auto* k) { return at.whole(k, max); });
}

result<void> maybe_bytes(const json_reader& at, const char* key, std::uint64_t& into) {
  return maybe(at, key, into, [&](auto* k) { return at.bytes(k); });
}

result<void> maybe_flag(const json_reader& at, const char* key, bool& into) {
  return maybe(at, key, into, [&](auto* k) { return at.flag(k); });
}

result<core::pipeline_plan> plan_of(const json_reader& at) {
  if (at.has("csv")) {
    TRY_VOID(at.expect({"csv"}));
    TRY(auto text, at.text("csv"));
    auto plan = core::parse_csv(text);
    if (!plan) return in(at.place("csv"), plan.error());
    return plan;
  }
  TRY_VOID(at.expect({"name", "ranks", "micro_batches"}, {"chunks", "group", "batches", "warm_up",
                                                          "replicas", "recompute", "live_max"}));
  core::plan_options options;
  TRY(options.name, at.text("name"));
  TRY_VOID(maybe_whole(at, "ranks", options.ranks, core::plan_ranks_max));
  TRY_VOID(maybe_whole(at, "micro_batches", options.micro_batches, core::plan_micro_batches_max));
  TRY_VOID(maybe_whole(at, "chunks", options.chunks, core::plan_stages_max));
  TRY_VOID(maybe_whole(at, "group", options.group, core::plan_micro_batches_max));
  TRY_VOID(maybe_whole(at, "batches", options.batches, core::plan_micro_batches_max));
  TRY_VOID(maybe_whole(at, "live_max", options.live_max, core::plan_micro_batches_max));
  TRY_VOID(maybe_flag(at, "recompute", options.recompute));
  if (at.has("warm_up")) {
    TRY(options.warm_up, at.wholes("warm_up", core::plan_micro_batches_max));
  }
  if (at.has("replicas")) {
    TRY(options.replicas, at.wholes("replicas", core::plan_ranks_max));
  }
  auto plan = core::make_plan(options);
  if (!plan) return in(at.place("name"), plan.error());
  return plan;
}

result<core::stage_costs> stage_of(const json_reader& at) {
  TRY_VOID(at.expect({"forward"}, {"backward", "input_gradient", "weight_gradient", "recompute",
                                   "optimizer", "input_bytes", "stash_bytes", "parameter_bytes"}));
  core::stage_costs c;
  TRY_VOID(maybe_time(at, "forward", c.forward_ns));
  TRY_VOID(maybe_time(at, "backward", c.backward_ns));
  TRY_VOID(maybe_time(at, "input_gradient", c.input_gradient_ns));
  TRY_VOID(maybe_time(at, "weight_gradient", c.weight_gradient_ns));
  TRY_VOID(maybe_time(at, "recompute", c.recompute_ns));
  TRY_VOID(maybe_time(at, "optimizer", c.optimizer_ns));
  TRY_VOID(maybe_bytes(at, "input_bytes", c.input_bytes));
  TRY_VOID(maybe_bytes(at, "stash_bytes", c.stash_bytes));
  TRY_VOID(maybe_bytes(at, "parameter_bytes", c.parameter_bytes));
  return c;
}

result<void> read_stages(const json_reader& at, scenario& into) {
  auto& stages = into.costs.stages;
  if (at.has("stage") == at.has("stages"))
    return {errc::config, at.place("stages") +
                            ": expected either \"stage\" (all are alike) or "
                            "\"stages\" (one for each virtual stage)"};
  if (at.has("stage")) {
    TRY(auto one, at.object("stage"));
    TRY(auto cost, stage_of(one));
    stages.assign(into.plan.stage_count(), cost);
    return {};
  }
  TRY(auto* all, at.list("stages"));
  if (all->size() != into.plan.stage_count())
    return {errc::config, at.place("stages") + ": expected one for each of the schedule's " +
                            std::to_string(into.plan.stage_count()) + " virtual stages, found " +
                            std::to_string(all->size())};
  for (std::size_t s = 0; s < all->size(); ++s) {
    TRY(auto cost, stage_of({(*all)[s], at.place("stages") + "[" + std::to_string(s) + "]"}));
    stages.push_back(cost);
  }
  return {};
}

/// {"latency", "rate"}, or a list of these with "bytes".
result<core::link_table> link_of(const json& value, const std::string& path) {
  core::link_table table;
  if (!value.is_array()) {
    json_reader one(value, path);
    TRY_VOID(one.expect({}, {"latency", "rate"}));
    std::int64_t latency_ns = 0;
    double rate = 0;
    TRY_VOID(maybe_time(one, "latency", latency_ns));
    TRY_VOID(maybe(one, "rate", rate, [&](auto* k) { return one.rate(k); }));
    return core::link_table::flat(latency_ns, rate);
  }
  for (std::size_t i = 0; i < value.size(); ++i) {
    json_reader row(value[i], path + "[" + std::to_string(i) + "]");
    TRY_VOID(row.expect({"bytes", "latency", "rate"}));
    core::link_point point;
    TRY(point.bytes, row.bytes("bytes"));
    TRY_VOID(maybe_time(row, "latency", point.latency_ns));
    TRY(point.bytes_per_s, row.rate("rate"));
    table.rows.push_back(point);
  }
  if (auto sound = check(table); !sound) return in(path, sound.error());
  return table;
}

result<void> read_links(const json& value, const json_reader& at, core::simulation_costs& costs) {
  if (at.has("link")) {
    TRY(costs.link, link_of(value["link"], at.place("link")));
  }
  if (!at.has("links")) return {};
  TRY(auto* all, at.list("links"));
  for (std::size_t i = 0; i < all->size(); ++i) {
    auto path = at.place("links") + "[" + std::to_string(i) + "]";
    json_reader one((*all)[i], path);
    TRY_VOID(one.expect({"from", "to", "table"}));
    core::link_between link;
    TRY_VOID(maybe_whole(one, "from", link.from, core::plan_ranks_max));
    TRY_VOID(maybe_whole(one, "to", link.to, core::plan_ranks_max));
    TRY(link.table, link_of((*all)[i]["table"], path + ".table"));
    costs.others.push_back(std::move(link));
  }
  return {};
}

result<void> read_machine(const json_reader& at, core::simulation_costs& costs) {
  if (at.has("speeds")) {
    TRY(auto* all, at.list("speeds"));
    for (std::size_t i = 0; i < all->size(); ++i) {
      auto& v = (*all)[i];
      if (!v.is_number())
        return {errc::config, at.place("speeds") + "[" + std::to_string(i) +
                                "]: expected a number above 0, found " + v.dump(-1, ' ', true)};
      costs.speeds.push_back(v.get<double>());
    }
  }
  if (at.has("machines")) {
    TRY(costs.machines, at.wholes("machines", 1'000'000));
  }
  TRY_VOID(maybe(at, "card_rate", costs.card_bytes_per_s, [&](auto* k) { return at.rate(k); }));
  TRY_VOID(maybe_flag(at, "half_duplex", costs.half_duplex));
  TRY_VOID(maybe_flag(at, "blocking_sends", costs.blocking_sends));
  TRY_VOID(maybe_flag(at, "recompute_waits", costs.recompute_waits));
  TRY_VOID(maybe_time(at, "cell_overhead", costs.cell_overhead_ns));
  TRY_VOID(maybe(at, "overlap", costs.overlap, [&](auto* k) { return at.real(k, 0, 10); }));
  TRY_VOID(maybe(at, "jitter", costs.jitter, [&](auto* k) { return at.real(k, 0, 100); }));
  return maybe(at, "seed", costs.seed, [&](auto* k) { return at.whole(k, UINT64_MAX); });
}

result<void> read_reduction(const json& value, const json_reader& at, core::reduction_costs& into) {
  TRY_VOID(maybe_time(at, "step_overhead", into.step_overhead_ns));
  if (!at.has("reduction")) return {};
  TRY(auto one, at.object("reduction"));
  TRY_VOID(one.expect({}, {"kind", "link", "pieces", "norm"}));
  if (one.has("kind")) {
    TRY(auto kind, one.text("kind"));
    if (kind != "ring" && kind != "partial_sums")
      return {errc::config, one.place("kind") +
                              ": expected \"ring\" or \"partial_sums\", found \"" + kind + "\""};
    into.kind = kind == "ring" ? core::reduction_kind::ring : core::reduction_kind::partial_sums;
  }
  if (one.has("link")) {
    TRY(into.link, link_of(value["reduction"]["link"], one.place("link")));
  }
  TRY_VOID(maybe_whole(one, "pieces", into.pieces, 1 << 16));
  return maybe_time(one, "norm", into.norm_ns);
}

result<scenario> scenario_of(const json& value) {
  json_reader at(value, "scenario");
  TRY_VOID(at.expect(
    {"schedule"}, {"stage", "stages", "link", "links", "speeds", "machines", "card_rate",
                   "half_duplex", "blocking_sends", "recompute_waits", "cell_overhead", "overlap",
                   "jitter", "seed", "replicas", "reduction", "step_overhead"}));
  scenario made;
  TRY(auto schedule, at.object("schedule"));
  TRY(made.plan, plan_of(schedule));
  if (auto sound = core::validate_plan(made.plan); !sound)
    return in(at.place("schedule"), sound.error());
  TRY_VOID(read_stages(at, made));
  TRY_VOID(read_links(value, at, made.costs));
  TRY_VOID(read_machine(at, made.costs));
  TRY_VOID(maybe_whole(at, "replicas", made.replicas, replicas_max));
  if (made.replicas == 0) return {errc::config, at.place("replicas") + ": expected at least 1"};
  TRY_VOID(read_reduction(value, at, made.reduction));
  return made;
}

}  // namespace

result<scenario> parse_scenario(const std::string& text) {
  if (text.size() > scenario_bytes_max) return {errc::config, "scenario: at most 64 MiB are read"};
  auto value = json::parse(text, nullptr, false);
  if (value.is_discarded()) return {errc::config, "scenario: this is not JSON, or not all of it"};
  return scenario_of(value);
}

result<core::simulation> run_scenario(const scenario& what, bool timeline) {
  auto costs = what.costs;
  costs.timeline = timeline;
  std::vector<core::replica_input> replicas(what.replicas, {&what.plan, &costs});
  return core::simulate_step(replicas, what.reduction);
}

}  // namespace shoal::app
