#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "base/rng.hpp"
#include "core/pipeline/program.hpp"
#include "core/schedule/cell_index.hpp"
#include "core/schedule/text.hpp"

namespace shoal::core::events {

namespace {

constexpr std::int64_t time_max_ns = 1'000'000'000'000'000;  // eleven days

std::int64_t time_of(const stage_costs& c, operation what) {
  switch (what) {
    case operation::forward:
      return c.forward_ns;
    case operation::backward:
      return c.backward_ns;
    case operation::recompute:
      return c.recompute_ns;
    case operation::input_gradient:
      return c.input_gradient_ns;
    case operation::weight_gradient:
      return c.weight_gradient_ns;
    default:
      return 0;
  }
}

error wrong(const std::string& text) { return {errc::config, text}; }

result<void> check_stage(const stage_costs& c, std::size_t s) {
  auto where = "stage " + std::to_string(s) + ": ";
  for (auto t : {c.forward_ns, c.backward_ns, c.recompute_ns, c.input_gradient_ns,
                 c.weight_gradient_ns, c.optimizer_ns})
    if (t < 0 || t > time_max_ns)
      return wrong(where + "a time of " + std::to_string(t) + " ns; expected 0 to " +
                   std::to_string(time_max_ns));
  for (auto b : {c.input_bytes, c.stash_bytes, c.parameter_bytes})
    if (b > (1ull << 50)) return wrong(where + std::to_string(b) + " bytes; at most 2^50");
  return {};
}

result<void> check_costs(const pipeline_plan& plan, const simulation_costs& c) {
  TRY_VOID(check_shape(plan));
  auto ranks = std::size_t{plan.rank_count()};
  if (c.stages.size() != plan.stage_count())
    return wrong("costs of " + std::to_string(c.stages.size()) + " stages; the plan has " +
                 std::to_string(plan.stage_count()));
  for (std::size_t s = 0; s < c.stages.size(); ++s) TRY_VOID(check_stage(c.stages[s], s));
  if (!c.speeds.empty() && c.speeds.size() != ranks)
    return wrong(std::to_string(c.speeds.size()) + " speeds for " + std::to_string(ranks) +
                 " ranks; expected none or one each");
  for (auto s : c.speeds)
    if (!std::isfinite(s) || s < 1e-6 || s > 1e6)
      return wrong("a speed of " + std::to_string(s) + "; expected 1e-6 to 1e6");
  if (!c.live_max.empty() && c.live_max.size() != ranks)
    return wrong(std::to_string(c.live_max.size()) + " limits of micro-batches for " +
                 std::to_string(ranks) + " ranks; expected none or one each");
  if (!c.machines.empty() && c.machines.size() != ranks)
    return wrong(std::to_string(c.machines.size()) + " machines for " + std::to_string(ranks) +
                 " ranks; expected none or one each");
  if (!(std::isfinite(c.card_bytes_per_s) && c.card_bytes_per_s >= 0))
    return wrong("the rate of a card must be a number of 0 or more");
  if (c.cell_overhead_ns < 0 || c.cell_overhead_ns > time_max_ns)
    return wrong("an overhead of " + std::to_string(c.cell_overhead_ns) + " ns; expected 0 up");
  if (!(c.jitter >= 0 && c.jitter <= 100)) return wrong("jitter must be from 0 to 100");
  if (!(c.overlap > 0 && c.overlap <= 10)) return wrong("overlap must be above 0 and at most 10");
  TRY_VOID(check(c.link));
  for (auto& l : c.others) {
    if (l.from >= ranks || l.to >= ranks || l.from == l.to)
      return wrong("a link from rank " + std::to_string(l.from) + " to " + std::to_string(l.to) +
                   "; expected two different ranks below " + std::to_string(ranks));
    TRY_VOID(check(l.table));
  }
  return {};
}

class compiler {
public:
  result<program> make(std::span<const replica_input> replicas) {
    double card = 0;
    std::uint32_t machine_max = 0;
    std::size_t cells = 0;
    for (auto& r : replicas) {
      TRY_VOID(check_costs(*r.plan, *r.costs));
      for (auto& order : r.plan->ranks) cells += order.size();
      if (r.costs->machines.empty()) continue;
      card = std::max(card, r.costs->card_bytes_per_s);
      for (auto m : r.costs->machines) machine_max = std::max(machine_max, m);
    }
    if (machine_max > 1'000'000)
      return wrong("machine " + std::to_string(machine_max) + "; numbers go to 1000000");
    reserve(cells);
    if (card > 0) p_.cards.assign(machine_max + 1, card / 1e9);
    for (std::uint32_t i = 0; i < replicas.size(); ++i) TRY_VOID(add(replicas[i], i));
    return std::move(p_);
  }

private:
  void reserve(std::size_t cells) {
    p_.tasks.reserve(cells), p_.cells.reserve(cells), p_.cell_ends.reserve(cells);
    p_.all_cells.reserve(cells), p_.edges.reserve(cells), p_.edge_bytes.reserve(cells);
  }

  result<void> add(const replica_input& input, std::uint32_t replica) {
    auto& plan = *input.plan;
    first_lane_ = static_cast<std::uint32_t>(p_.lanes.size());
    replica_ = replica;
    wires_.clear();
    lines_.clear();
    cell_index index(plan);
    std::vector<std::uint32_t> task_of(index.count(), nothing);
    hops_.assign(std::size_t{plan.stage_count()} * plan.placement.size() * 2, {});
    for (rank_index r = 0; r < plan.rank_count(); ++r) add_lane(input, index, r, task_of);
    return connect(input, index, task_of);
  }

  void add_lane(const replica_input& in, const cell_index& index, rank_index r,
                std::vector<std::uint32_t>& task_of) {
    auto& order = in.plan->ranks[r];
    auto& costs = *in.costs;
    lane l;
    l.begin = static_cast<std::uint32_t>(p_.tasks.size());
    l.opportunistic = in.plan->policy.opportunistic;
    l.live_max = in.plan->policy.live_max;
    if (!costs.live_max.empty()) l.live_max = std::min(l.live_max, costs.live_max[r]);
    l.blocking = costs.blocking_sends;
    for (std::size_t i = 0; i < order.size();) {
      auto end = end_of_group(order, i);
      task t;
      double total = 0;
      auto first = p_.all_cells.size();
      for (auto k = i; k < end; ++k) {
        if (!is_compute(order[k].what)) continue;
        total += duration(costs, r, order[k]);
        task_of[index.number(r, k)] = static_cast<std::uint32_t>(p_.tasks.size());
        p_.all_cells.push_back(order[k]);
        if (order[k].what == operation::forward) t.live += 1;
        if (order[k].what == operation::backward || order[k].what == operation::weight_gradient)
          t.live -= 1;
        t.is_forward = end == i + 1 && order[k].what == operation::forward;
      }
      i = end;
      auto count = p_.all_cells.size() - first;
      if (count == 0) continue;
      t.duration_ns = std::llround(count > 1 ? total * costs.overlap : total);
      p_.tasks.push_back(t);
      p_.cells.push_back(p_.all_cells[first]);
      p_.cell_ends.push_back(static_cast<std::uint32_t>(p_.all_cells.size()));
    }
    l.end = static_cast<std::uint32_t>(p_.tasks.size());
    p_.lanes.push_back(l);
    p_.replica_of.push_back(replica_);
    p_.rank_of.push_back(r);
  }

  double duration(const simulation_costs& costs, rank_index r, const cell& c) const {
    auto t = static_cast<double>(time_of(costs.stages[c.stage], c.what));
    if (!costs.speeds.empty()) t /= costs.speeds[r];
    t += static_cast<double>(costs.cell_overhead_ns);
    if (costs.jitter > 0) {
      std::array<std::uint64_t, 6> key{
        costs.seed, replica_, r, c.stage, c.micro_batch, static_cast<std::uint64_t>(c.what)};
      t *= 1 + costs.jitter * static_cast<double>(mix_key(key) >> 11) * 0x1p-53;
    }
    return t;
  }

  /// Gives each cell its edges to the neighbour stages, in program order.
  result<void> connect(const replica_input& in, const cell_index& index,
                       const std::vector<std::uint32_t>& task_of) {
    auto& plan = *in.plan;
    for (rank_index r = 0; r < plan.rank_count(); ++r) {
      for (std::size_t i = 0; i < plan.ranks[r].size(); ++i) {
        auto& c = plan.ranks[r][i];
        auto from = task_of[index.number(r, i)];
        if (from == nothing) continue;
        auto& t = p_.tasks[from];
        if (t.edge_count == 0) t.first_edge = static_cast<std::uint32_t>(p_.edges.size());
        TRY_VOID(give(in, index, task_of, c, from));
        if (c.what != operation::recompute) continue;
        auto b = index.find_backward(c.stage, c.micro_batch);
        if (b == no_cell) continue;
        p_.tasks[from].partner = task_of[b];
        p_.tasks[from].waits = in.costs->recompute_waits;
      }
    }
    return check_inputs(in, index);
  }

  result<void> give(const replica_input& in, const cell_index& index,
                    const std::vector<std::uint32_t>& task_of, const cell& c, std::uint32_t from) {
    auto& plan = *in.plan;
    bool up = c.what == operation::backward || c.what == operation::input_gradient;
    cell_number target = no_cell;
    std::uint64_t bytes = 0;
    if (c.what == operation::forward && c.stage + 1 < plan.stage_count()) {
      target = index.find(operation::forward, c.stage + 1, c.micro_batch);
      bytes = in.costs->stages[c.stage + 1].input_bytes;
    } else if (up && c.stage > 0) {
      target = index.find_backward(c.stage - 1, c.micro_batch);
      bytes = in.costs->stages[c.stage].input_bytes;
    }
    if (target == no_cell) return {};
    auto to = task_of[target];
    auto& way = hops_[(std::size_t{plan.chain(c.micro_batch)} * plan.stage_count() + c.stage) * 2 +
                      (up ? 1 : 0)];
    if (!way.known) way = hop_of(in, c, up ? c.stage - 1 : c.stage + 1, bytes);
    auto e = way.as_edge;
    e.target = to;
    p_.edges.push_back(e);
    p_.edge_bytes.push_back(bytes);
    ++p_.tasks[from].edge_count;
    ++p_.tasks[to].inputs;
    return {};
  }

  /// What all micro-batches of a chain have in common on their way from a stage to the next.
  struct hop {
    edge as_edge;
    bool known = false;
  };

  hop hop_of(const replica_input& in, const cell& c, virtual_stage other, std::uint64_t bytes) {
    hop made{.known = true};
    auto a = in.plan->rank_of(c.stage, c.micro_batch), b = in.plan->rank_of(other, c.micro_batch);
    if (a == b) return made;
    auto& table = in.costs->link_from(a, b);
    made.as_edge.link = wire_of(in, a, b);
    made.as_edge.occupancy_ns = table.occupancy_ns(bytes);
    made.as_edge.latency_ns = table.latency_ns(bytes);
    auto card = p_.wires[made.as_edge.link].card_out;
    if (card != nothing)
      made.as_edge.occupancy_ns = std::max<std::int64_t>(
        made.as_edge.occupancy_ns, std::llround(static_cast<double>(bytes) / p_.cards[card]));
    return made;
  }

  /// What a cell needs on its own rank must stand before it; what it needs of others must exist.
  result<void> check_inputs(const replica_input& in, const cell_index& index) const {
    auto& plan = *in.plan;
    for (rank_index r = 0; r < plan.rank_count(); ++r)
      for (std::size_t i = 0; i < plan.ranks[r].size(); ++i) {
        auto& c = plan.ranks[r][i];
        if (!is_compute(c.what)) continue;
        auto here = index.number(r, i);
        auto wrong_cell = [&, r](const std::string& text) {
          return wrong("rank " + std::to_string(r) + ", cell \"" + text_of(c) + "\": " + text);
        };
        if (index.find(c.what, c.stage, c.micro_batch) != here)
          return wrong_cell("is there twice; expected once");
        if (plan.rank_of(c.stage, c.micro_batch) != r)
          return wrong_cell("the stage is on rank " +
                            std::to_string(plan.rank_of(c.stage, c.micro_batch)));
        auto end = index.number(r, plan.ranks[r].size());
        cell_number late = no_cell;
        index.for_each_input(c, [&](cell_number n) {
          if (n >= here && n < end && index.at(n).stage == c.stage) late = n;
        });
        if (late != no_cell)
          return wrong_cell("comes before \"" + text_of(index.at(late)) + "\", which it needs");
        bool last = c.stage + 1 == plan.stage_count();
        bool goes_back = c.what == operation::backward || c.what == operation::input_gradient;
        if ((c.what == operation::forward && c.stage > 0 &&
             index.find(operation::forward, c.stage - 1, c.micro_batch) == no_cell) ||
            (goes_back && !last && index.find_backward(c.stage + 1, c.micro_batch) == no_cell))
          return wrong_cell("nothing makes its input; expected a cell on the neighbour stage");
      }
    return {};
  }

  std::uint32_t wire_of(const replica_input& in, rank_index a, rank_index b) {
    auto [found, fresh] = wires_.try_emplace({a, b}, static_cast<std::uint32_t>(p_.wires.size()));
    if (!fresh) return found->second;
    auto pair = in.costs->half_duplex ? std::pair{std::min(a, b), std::max(a, b)} : std::pair{a, b};
    auto [line, is_new] = lines_.try_emplace(pair, p_.line_count);
    if (is_new) ++p_.line_count;
    wire w{.from = first_lane_ + a, .to = first_lane_ + b, .line = line->second};
    auto& machines = in.costs->machines;
    if (!p_.cards.empty() && !machines.empty() && machines[a] != machines[b]) {
      w.card_out = machines[a];
      w.card_in = machines[b];
    }
    p_.wires.push_back(w);
    return found->second;
  }

  program p_;
  std::uint32_t first_lane_ = 0, replica_ = 0;
  std::vector<hop> hops_;  // by chain, stage, and whether backward
  std::map<std::pair<rank_index, rank_index>, std::uint32_t> wires_, lines_;
};

}  // namespace

result<program> compile(std::span<const replica_input> replicas) {
  return compiler().make(replicas);
}

}  // namespace shoal::core::events
