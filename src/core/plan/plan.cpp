#include "core/plan/plan.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "base/assert.hpp"
#include "core/plan/ahead.hpp"
#include "core/plan/losses.hpp"
#include "core/plan/moves.hpp"
#include "core/plan/plan_text.hpp"
#include "core/plan/search.hpp"
#include "core/schedule/schedule.hpp"

namespace shoal::core {

namespace {

using namespace planning;

// So many of the fastest are asked what they would move.
constexpr std::size_t finalist_count = 4;

/// What the smallest stage of `b` alone needs.
std::uint64_t least_bytes(const costs& cost, block_index b) {
  return cost.needed_bytes(index_range{b, b + 1}, 1, 1, true);
}

/// Takes out nodes that cannot hold any block. `errc::no_memory` when some block fits nowhere.
result<void> drop_hopeless(const plan_profile& profile, const costs& cost,
                           std::vector<worker>& workers, spare_list& spares) {
  auto largest = std::max_element(workers.begin(), workers.end(),
                                  [](auto& a, auto& b) { return a.memory_bytes < b.memory_bytes; });
  auto smallest_need = UINT64_MAX;
  for (block_index b = 0; b < cost.block_count(); ++b) {
    auto need = least_bytes(cost, b);
    smallest_need = std::min(smallest_need, need);
    if (need > largest->memory_bytes)
      return {errc::no_memory,
              "block " + std::to_string(b) + " (" + profile.blocks[b].name + ") alone needs " +
                text_of_bytes(need) + ", " + text_of_bytes(need - largest->memory_bytes) +
                " more than the largest node, " + std::to_string(largest->node.value) +
                ", may use (" + text_of_bytes(largest->memory_bytes) +
                "); raise nodes.memory or use a smaller model or micro-batch"};
  }
  std::vector<worker> able;
  for (auto& w : workers)
    if (w.memory_bytes >= smallest_need)
      able.push_back(w);
    else
      spares.add(w.node, "it may use " + text_of_bytes(w.memory_bytes) +
                           ", the smallest block needs " + text_of_bytes(smallest_need));
  workers = std::move(able);
  return {};
}

error does_not_fit(const price_list& prices, const std::vector<worker>& workers) {
  auto& cost = prices.cost;
  auto slots = slot_count_of(prices.tree, {0, prices.tree.micro_batches});
  std::uint64_t need = cost.needed_bytes(cost.all_blocks(), 1, slots, false), have = 0;
  for (auto& w : workers) have += w.memory_bytes;
  auto text = "the model does not fit on " + count_of(workers.size(), "node") +
              ": on one node it needs " + text_of_bytes(need) + ", together they may use " +
              text_of_bytes(have) +
              (need > have ? ", " + text_of_bytes(need - have) + " too little"
                           : ", but no cut between blocks suits them");
  std::string hint;
  if (prices.job.training.recompute == recompute_rule::never)
    hint = "; training.recompute = \"auto\" may help";
  auto depth = prices.job.parallelism.depth;
  if (depth != 0 && depth <= workers.size())
    return {errc::no_memory, text + "; parallelism.depth = " + std::to_string(depth) +
                               " keeps it from being cut finer: raise it, or set 0" + hint};
  return {errc::too_few_nodes, text + "; more nodes or a larger nodes.memory would help" + hint};
}

/// `present` as a candidate, when its nodes are here and it still is what the job asks for.
std::optional<candidate> as_candidate(const price_list& prices, const layout& present,
                                      const std::vector<worker>& workers) {
  if (!check(present, prices.cost.block_count(), prices.tree.micro_batches, errc::internal))
    return std::nullopt;
  candidate c;
  std::size_t deepest = 0;
  for (auto& replica : present.replicas) {
    auto& one = c.chains.emplace_back();
    one.micro_batches = replica.micro_batches;
    deepest = std::max(deepest, replica.stages.size());
    for (auto& s : replica.stages) {
      auto found =
        std::find_if(workers.begin(), workers.end(), [&](auto& w) { return w.node == s.node; });
      if (found == workers.end()) return std::nullopt;
      one.workers.push_back(*found);
    }
    if (replica.chunk_count() != chunks_of(prices, one.stages())) return std::nullopt;
    for (std::uint32_t c = 0; c < replica.chunk_count(); ++c)
      for (auto& s : replica.stages) one.blocks.push_back(s.blocks.chunks()[c]);
    choose_recompute(prices, one);
  }
  std::size_t depth = std::min(prices.job.parallelism.depth, prices.cost.block_count());
  if (depth != 0 && deepest != std::min(depth, workers.size())) return std::nullopt;
  if (!fits(prices, c)) return std::nullopt;
  reprice(prices, c);
  return c;
}

/// Among candidates as fast as each other, the one that moves least; `present` where that is as
/// good, or where the pause of leaving it would cost more than is won until the next change.
candidate settle_best(const price_list& prices, std::vector<candidate> finalists,
                      const layout& present, const std::vector<worker>& workers) {
  SHOAL_ASSERT(!finalists.empty());
  auto limit_s = finalists.front().step_s * as_fast;
  auto same = as_candidate(prices, present, workers);
  if (auto& first = finalists.front(); same && same->step_s <= limit_s &&
                                       same->worker_count() >= first.worker_count() &&
                                       same->is_redundant() >= first.is_redundant())
    return *same;
  if (finalists.size() > finalist_count) finalists.resize(finalist_count);
  if (present.replicas.empty()) return finalists.front();
  for (auto& c : finalists) settle(prices, c, workers, present, limit_s);
  auto chosen = std::min_element(finalists.begin(), finalists.end(),
                                 [](auto& a, auto& b) { return a.moved_bytes < b.moved_bytes; });
  if (same) {
    auto pause_s = pause_seconds(prices.cost, *chosen, present);
    auto share = loss_share(chosen->worker_count(), pause_s, prices.job.nodes.mean_life);
    if (same->cost_s() <= chosen->cost_s() * (1 + share)) return *same;
  }
  return *chosen;
}

void add_idle(const price_list& prices, const search& found, const candidate& chosen,
              const std::vector<worker>& workers, spare_list& spares) {
  auto shape = chosen.shape();
  std::string why;
  if (std::uint64_t most = std::uint64_t{prices.tree.micro_batches} * prices.cost.block_count();
      workers.size() > most)
    why = "micro-batches and blocks allow " + count_of(most, "node") + " at most";
  else if (prices.job.parallelism.depth != 0 && !std::isfinite(found.best_with_all()))
    why = "parallelism.depth = " + std::to_string(prices.job.parallelism.depth) +
          " leaves no place for it";
  else if (found.best_with_all() < chosen.step_s)
    why = "the pause of moving state to it would cost more than it brings until the next change";
  else if (std::isfinite(found.best_with_all()))
    why = "with all nodes at work a step would take at least " +
          text_of_time(found.best_with_all()) + " instead of " + text_of_time(chosen.step_s);
  else
    why = "no layout with it fits into the nodes' memory and the step's micro-batches";
  for (auto& w : workers) {
    place unused;
    if (!find_place(shape, w.node, unused)) spares.add(w.node, why);
  }
}

/// What plans in all orders begin from.
struct question {
  const plan_profile& profile;
  const std::vector<plan_node>& nodes;
  const layout& present;
  const costs& cost;
  free_cuts& free;
};

/// A plan, and what a step costs with the pause of moving to it spread over the time until the next
/// node is lost.
struct priced_plan {
  plan_result made;
  double cost_s = 0;
};

/// With the schedule that `job` names; `simulated`: what the simulator says it takes.
result<priced_plan> plan_in_order(const question& asked, const job_options& job, bool simulated) {
  auto& [profile, nodes, present, cost, free] = asked;
  SHOAL_ASSERT(!profile.blocks.empty() && job.training.micro_batches > 0);
  auto nodes_min = std::max(1u, job.parallelism.nodes_min);
  if (nodes.size() < nodes_min)
    return {errc::too_few_nodes, count_of(nodes.size(), "node") +
                                   " here, parallelism.nodes_min asks for " +
                                   std::to_string(nodes_min) + "; waiting for more"};
  bool always = job.training.recompute == recompute_rule::always;
  TRY([[maybe_unused]] auto known, stash_peaks_of({.name = job.parallelism.schedule,
                                                   .stage_count = 2,
                                                   .recompute = std::vector<bool>(2, always)}));

  price_list prices{cost, job, {job.training.micro_batches, reduction_leaf(job.training)}, free};
  spare_list spares;
  auto workers = classify(nodes, present);
  TRY_VOID(drop_hopeless(profile, cost, workers, spares));
  auto nodes_max = job.parallelism.nodes_max;
  for (; nodes_max != 0 && workers.size() > nodes_max; workers.pop_back())
    spares.add(workers.back().node, "parallelism.nodes_max is " + std::to_string(nodes_max));

  search found(prices, workers);
  auto finalists = found.run();
  if (finalists.empty()) return does_not_fit(prices, workers);
  auto chosen = settle_best(prices, std::move(finalists), present, workers);
  add_idle(prices, found, chosen, workers, spares);

  plan_result made{.shape = chosen.shape(),
                   .spares = spares.nodes,
                   .step_expected = nanoseconds_of(chosen.step_s),
                   .moved_bytes = chosen.moved_bytes,
                   .reason = reason_for(chosen, found, present) + spares.text() + "."};
  std::sort(made.spares.begin(), made.spares.end());
  auto expected = set_ahead(prices, chosen, made.shape, simulated);
  if (expected) made.step_expected = *expected;
  auto sound = check(made.shape, cost.block_count(), job.training.micro_batches, errc::internal);
  if (!sound) return sound.error();
  auto pause_s = present.replicas.empty() ? 0 : pause_seconds(cost, chosen, present);
  auto share = loss_share(chosen.worker_count(), pause_s, job.nodes.mean_life);
  auto step_s = std::chrono::duration<double>(made.step_expected).count();
  return priced_plan{std::move(made), step_s * (1 + share)};
}

/// The best of all schedules. Of those as fast, the one that moves least, then that which holds the
/// fewest micro-batches.
result<plan_result> plan_any_order(const question& asked, const job_options& job) {
  std::vector<priced_plan> plans;
  std::optional<error> refused;
  std::string others;
  for (auto order : stage_orders) {
    if (order == stage_order::varuna && job.training.recompute != recompute_rule::always) continue;
    if (order == stage_order::interleaved && job.parallelism.chunks == 1) continue;
    auto named = job;
    named.parallelism.schedule = to_string(order);
    auto planned = plan_in_order(asked, named, true);
    if (!planned) {
      if (!refused) refused = planned.error();
      continue;
    }
    planned->made.shape.order = order;
    others += (others.empty() ? "" : ", ") + named.parallelism.schedule + " " +
              shoal::text_of(planned->made.step_expected);
    plans.push_back(std::move(*planned));
  }
  if (plans.empty()) return *refused;
  auto least_s = std::ranges::min(plans, {}, &priced_plan::cost_s).cost_s;
  std::erase_if(plans, [&](auto& p) { return p.cost_s > least_s * as_fast; });
  auto best = std::ranges::min_element(plans, {}, [](auto& p) { return p.made.moved_bytes; })->made;
  best.reason += " Schedule " + std::string(to_string(best.shape.order)) +
                 ", of the best layouts of each: " + others + " a step.";
  return best;
}

}  // namespace

result<plan_result> plan(const plan_profile& profile, const std::vector<plan_node>& nodes,
                         const layout& present, const job_options& job) {
  // Whatever runs it, blocks stay where they are.
  auto held = present;
  held.order = stage_order::as_job;
  for (auto& replica : held.replicas) {
    replica.ahead.clear();
    for (auto& s : replica.stages)
      s.recompute &= job.training.recompute == recompute_rule::as_needed;
  }
  costs cost(profile);
  free_cuts free(cost, job.training.recompute == recompute_rule::always);
  question asked{profile, nodes, held, cost, free};
  if (job.parallelism.schedule == "auto") return plan_any_order(asked, job);
  TRY(auto planned, plan_in_order(asked, job, false));
  return std::move(planned.made);
}

}  // namespace shoal::core
