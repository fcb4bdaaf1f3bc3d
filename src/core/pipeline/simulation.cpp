#include "core/pipeline/simulation.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/pipeline/program.hpp"
#include "core/pipeline/reduction.hpp"

namespace shoal::core {

namespace {

using namespace events;

/// What a lane did and held, cell by cell in the order of execution.
rank_simulation measure(const program& p, const outcome& out, std::uint32_t l,
                        const simulation_costs& costs, std::vector<std::uint32_t>& order,
                        std::vector<std::uint8_t>& recomputed, std::uint32_t micro_batches) {
  auto& lane = p.lanes[l];
  order.clear();
  auto cells_of = [&](std::uint32_t t) {
    auto begin = t == 0 ? 0 : p.cell_ends[t - 1];
    return std::span(p.all_cells).subspan(begin, p.cell_ends[t] - begin);
  };
  auto pair_of = [&](const cell& c) {
    return std::size_t{c.stage} * micro_batches + c.micro_batch;
  };
  for (auto t = lane.begin; t < lane.end; ++t) {
    order.push_back(t);
    for (auto& c : cells_of(t))
      if (c.what == operation::recompute) recomputed[pair_of(c)] = 1;
  }
  if (lane.opportunistic)
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return out.begin_ns[a] < out.begin_ns[b]; });
  rank_simulation r;
  if (order.empty()) return r;
  r.first_ns = out.begin_ns[order.front()];
  std::uint64_t live = 0, bytes = 0;
  for (auto t : order) {
    r.busy_ns += out.end_ns[t] - out.begin_ns[t];
    r.last_ns = std::max(r.last_ns, out.end_ns[t]);
    for (auto& c : cells_of(t)) {
      auto& cost = costs.stages[c.stage];
      if (c.what == operation::forward) {
        ++live;
        bytes += cost.input_bytes + (recomputed[pair_of(c)] ? 0 : cost.stash_bytes);
      }
      if (c.what == operation::recompute) bytes += cost.stash_bytes;
    }
    r.live_peak = std::max(r.live_peak, static_cast<std::uint32_t>(live));
    r.bytes_peak = std::max(r.bytes_peak, bytes);
    for (auto& c : cells_of(t)) {
      if (c.what != operation::backward && c.what != operation::weight_gradient) continue;
      --live;
      bytes -= costs.stages[c.stage].input_bytes + costs.stages[c.stage].stash_bytes;
    }
  }
  return r;
}

void keep_records(const program& p, const outcome& out, std::vector<record>& records) {
  for (std::uint32_t l = 0; l < p.lanes.size(); ++l)
    for (auto t = p.lanes[l].begin; t < p.lanes[l].end; ++t) {
      auto first = t == 0 ? 0 : p.cell_ends[t - 1];
      for (auto c = first; c < p.cell_ends[t]; ++c)
        records.push_back({record_kind::compute, p.replica_of[l], p.rank_of[l], p.rank_of[l],
                           p.all_cells[c], out.begin_ns[t], out.end_ns[t]});
      auto& task = p.tasks[t];
      for (auto e = task.first_edge; e < task.first_edge + task.edge_count; ++e) {
        if (p.edges[e].link == nothing) continue;
        auto to = p.wires[p.edges[e].link].to;
        records.push_back({record_kind::transfer, p.replica_of[l], p.rank_of[l], p.rank_of[to],
                           p.cells[t], out.sent_ns[e], out.arrived_ns[e]});
      }
    }
}

/// Who holds each stage of each replica, and when its last gradient is there. A plan without a
/// flush updates on its way: its copies are not summed at the end.
std::vector<holder> holders_of(const program& p, const outcome& out,
                               std::span<const replica_input> replicas) {
  std::vector<std::vector<std::size_t>> first(replicas.size());  // of each stage
  std::vector<holder> holders;
  for (std::uint32_t r = 0; r < replicas.size(); ++r) {
    auto& plan = *replicas[r].plan;
    for (virtual_stage s = 0; s < plan.stage_count(); ++s) {
      auto& c = replicas[r].costs->stages[s];
      first[r].push_back(holders.size());
      for (std::size_t chain = 0; chain < plan.placement.size(); ++chain) {
        auto rank = plan.placement[chain][s];
        auto same = std::any_of(holders.begin() + static_cast<std::ptrdiff_t>(first[r][s]),
                                holders.end(), [&](auto& h) { return h.rank == rank; });
        bool counts = chain == 0 || plan.weights == weight_semantics::flush;
        if (same || !counts) continue;
        holders.push_back({r, rank, s, 0, c.parameter_bytes, c.optimizer_ns});
      }
    }
  }
  auto holder_of = [&](std::uint32_t replica, virtual_stage stage, rank_index rank) -> holder& {
    auto at = first[replica][stage];
    bool copies = replicas[replica].plan->weights == weight_semantics::flush;
    while (copies && holders[at].rank != rank) ++at;
    return holders[at];
  };
  for (std::uint32_t l = 0; l < p.lanes.size(); ++l)
    for (auto t = p.lanes[l].begin; t < p.lanes[l].end; ++t)
      for (auto c = t == 0 ? 0 : p.cell_ends[t - 1]; c < p.cell_ends[t]; ++c) {
        auto& ready = holder_of(p.replica_of[l], p.all_cells[c].stage, p.rank_of[l]).ready_ns;
        ready = std::max(ready, out.end_ns[t]);
      }
  return holders;
}

result<void> check_parameters(std::span<const replica_input> replicas) {
  std::uint64_t expected = 0;
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    std::uint64_t sum = 0;
    for (auto& s : replicas[r].costs->stages) sum += s.parameter_bytes;
    if (r == 0) expected = sum;
    if (sum != expected)
      return error{errc::config, "replica " + std::to_string(r) + " has " + std::to_string(sum) +
                                   " bytes of parameters, replica 0 has " +
                                   std::to_string(expected) + "; expected the same model"};
  }
  return {};
}

}  // namespace

const link_table& simulation_costs::link_from(rank_index from, rank_index to) const {
  for (auto& l : others)
    if (l.from == from && l.to == to) return l.table;
  return link;
}

double simulation::bubble_of_ideal() const {
  std::int64_t busiest = 0;
  for (auto& ranks : replicas)
    for (auto& r : ranks) busiest = std::max(busiest, r.busy_ns);
  return busiest == 0 ? 0
                      : static_cast<double>(pipeline_ns - busiest) / static_cast<double>(busiest);
}

double simulation::bubble_of_makespan() const {
  double ideal = bubble_of_ideal();
  return ideal / (1 + ideal);
}

result<simulation> simulate_step(std::span<const replica_input> replicas,
                                 const reduction_costs& reduction) {
  if (replicas.empty()) return error{errc::config, "no replica to simulate; expected at least one"};
  TRY_VOID(check(reduction.link));
  TRY(auto p, compile(replicas));
  TRY_VOID(check_parameters(replicas));
  TRY(auto out, run(p));
  simulation s;
  s.events = out.events;
  s.replicas.resize(replicas.size());
  bool timeline = false;
  std::vector<std::uint32_t> order;
  std::vector<std::uint8_t> recomputed;
  for (std::uint32_t l = 0; l < p.lanes.size(); ++l) {
    auto& input = replicas[p.replica_of[l]];
    timeline |= input.costs->timeline;
    if (p.rank_of[l] == 0)
      recomputed.assign(std::size_t{input.plan->stage_count()} * input.plan->micro_batches, 0);
    s.replicas[p.replica_of[l]].push_back(
      measure(p, out, l, *input.costs, order, recomputed, input.plan->micro_batches));
    s.pipeline_ns = std::max(s.pipeline_ns, s.replicas[p.replica_of[l]].back().last_ns);
  }
  if (timeline) keep_records(p, out, s.records);
  auto end =
    finish_step(holders_of(p, out, replicas), replicas, reduction, timeline ? &s.records : nullptr);
  s.exposed_reduction_ns = end.summed_ns - s.pipeline_ns;
  s.makespan_ns = end.end_ns;
  return s;
}

result<simulation> simulate(const pipeline_plan& plan, const simulation_costs& costs) {
  replica_input one{&plan, &costs};
  return simulate_step({&one, 1}, {});
}

}  // namespace shoal::core
