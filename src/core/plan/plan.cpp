#include "core/plan/plan.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>

#include "base/assert.hpp"
#include "core/plan/ahead.hpp"
#include "core/plan/losses.hpp"
#include "core/plan/moves.hpp"
#include "core/plan/search.hpp"
#include "core/schedule/schedule.hpp"

namespace shoal::core {

namespace {

using namespace planning;

// So many of the fastest are asked what they would move.
constexpr std::size_t finalist_count = 4;

std::string text_of_bytes(std::uint64_t bytes) { return text_of(byte_count{bytes}); }

nanoseconds to_nanoseconds(double seconds) {
  return nanoseconds(std::llround(std::min(seconds, 1e9) * 1e9));
}

std::string text_of_time(double seconds) { return shoal::text_of(to_nanoseconds(seconds)); }

std::string count_of(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

/// Nodes that get no work, and why.
struct spare_list {
  std::vector<node_id> nodes;
  std::map<std::string, std::vector<node_id>> by_reason;

  void add(node_id node, const std::string& why) {
    nodes.push_back(node);
    by_reason[why].push_back(node);
  }

  /// "; node 3 is spare: ..."; of many with one reason the first are named.
  std::string text() const {
    constexpr std::size_t named_max = 4;
    std::string all;
    for (auto [why, group] : by_reason) {
      std::ranges::sort(group);
      all += group.size() == 1 ? "; node " : "; nodes ";
      for (std::size_t i = 0; i < std::min(group.size(), named_max); ++i)
        all += (i == 0 ? "" : ", ") + std::to_string(group[i].value);
      if (group.size() > named_max)
        all += " and " + std::to_string(group.size() - named_max) + " more";
      all += (group.size() == 1 ? " is spare: " : " are spare: ") + why;
    }
    return all;
  }
};

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
  auto slots = accumulate(prices.tree, {0, prices.tree.micro_batches}).slot_count;
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

std::string listed(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    // Many replicas are told by their beginning and end.
    if (numbers.size() > 8 && i == 3) text += ", ...", i = numbers.size() - 2;
    text += (i == 0 ? "" : i + 1 == numbers.size() ? " and " : ", ") + std::to_string(numbers[i]);
  }
  return text;
}

/// The next three numbers of replicas.
std::string others_of(const candidate& chosen, const search& found) {
  std::vector<std::pair<double, std::size_t>> others;
  for (auto& [replicas, seconds] : found.best_by_replicas())
    if (replicas != chosen.chains.size()) others.emplace_back(seconds, replicas);
  constexpr std::size_t shown = 3;
  auto end = others.begin() + static_cast<std::ptrdiff_t>(std::min(shown, others.size()));
  std::partial_sort(others.begin(), end, others.end());
  std::string text;
  for (auto it = others.begin(); it != end; ++it)
    text += (it == others.begin() ? "; " : ", ") + count_of(it->second, "replica") +
            " would take at least " + text_of_time(it->first);
  return text;
}

std::string reason_for(const candidate& chosen, const search& found, const layout& present) {
  std::vector<std::uint32_t> depths, shares;
  double slowest_s = 0;
  std::ptrdiff_t again = 0;
  for (auto& replica : chosen.chains) {
    again += std::ranges::count(replica.recompute, true);
    depths.push_back(static_cast<std::uint32_t>(replica.workers.size()));
    shares.push_back(replica.micro_batches.size());
    slowest_s = std::max(slowest_s, replica.slowest_s);
  }
  auto text = count_of(chosen.chains.size(), "replica") + " of " + listed(depths) +
              (depths == std::vector<std::uint32_t>{1} ? " stage" : " stages") + " on " +
              count_of(chosen.worker_count(), "node") + ", " + listed(shares) +
              " micro-batches: " + text_of_time(chosen.step_s) + " a step, " +
              text_of_time(slowest_s) + " a micro-batch in the slowest stage, " +
              text_of_time(chosen.exchange_s) + " to exchange gradients";
  if (again > 0)
    text += ", " + count_of(static_cast<std::size_t>(again), "stage") + " recomputing to fit";
  if (chosen.redo_s > 0)
    text += ", " + text_of_time(chosen.redo_s) +
            " to redo what losses undo, as each block has one holder";
  text += others_of(chosen, found);
  if (!present.replicas.empty()) {
    if (chosen.shape() == present)
      text += "; nothing changes";
    else
      text += "; " + text_of_bytes(chosen.moved_bytes) + " move";
  }
  return text;
}

}  // namespace

namespace {

/// With the schedule that `job` names; `simulated`: what the simulator says it takes.
result<plan_result> plan_in_order(const plan_profile& profile, const std::vector<plan_node>& nodes,
                                  const layout& present, const job_options& job, bool simulated) {
  SHOAL_ASSERT(!profile.blocks.empty() && job.training.micro_batches > 0);
  auto nodes_min = std::max(1u, job.parallelism.nodes_min);
  if (nodes.size() < nodes_min)
    return {errc::too_few_nodes, count_of(nodes.size(), "node") +
                                   " here, parallelism.nodes_min asks for " +
                                   std::to_string(nodes_min) + "; waiting for more"};
  bool always = job.training.recompute == recompute_rule::always;
  TRY([[maybe_unused]] auto known, stash_peak_of({.name = job.parallelism.schedule,
                                                  .stage_count = 2,
                                                  .recompute = std::vector<bool>(2, always)},
                                                 0));

  costs cost(profile);
  price_list prices{cost, job, {job.training.micro_batches, reduction_leaf(job.training)}};
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
                   .step_expected = to_nanoseconds(chosen.step_s),
                   .moved_bytes = chosen.moved_bytes,
                   .reason = reason_for(chosen, found, present) + spares.text() + "."};
  std::sort(made.spares.begin(), made.spares.end());
  auto expected = set_ahead(prices, chosen, made.shape, simulated);
  if (expected) made.step_expected = *expected;
  auto sound = check(made.shape, cost.block_count(), job.training.micro_batches, errc::internal);
  if (!sound) return sound.error();
  return made;
}

/// The best of all schedules; one that holds more micro-batches must be worth it.
result<plan_result> plan_any_order(const plan_profile& profile, const std::vector<plan_node>& nodes,
                                   const layout& present, const job_options& job) {
  std::optional<result<plan_result>> best;
  std::string others;
  for (auto order : stage_orders) {
    if (order == stage_order::varuna && job.training.recompute != recompute_rule::always) continue;
    if (order == stage_order::interleaved && job.parallelism.chunks == 1) continue;
    auto named = job;
    named.parallelism.schedule = to_string(order);
    auto made = plan_in_order(profile, nodes, present, named, true);
    if (made) {
      made->shape.order = order;
      others += (others.empty() ? "" : ", ") + named.parallelism.schedule + " " +
                shoal::text_of(made->step_expected);
    }
    auto seconds = [](const auto& r) { return static_cast<double>((*r)->step_expected.count()); };
    bool better =
      !best || (made && (!*best || static_cast<double>(made->step_expected.count()) * as_fast <
                                     seconds(best)));
    if (better) best = std::move(made);
  }
  if (*best)
    (**best).reason += " Schedule " + std::string(to_string((**best).shape.order)) +
                       ", of the best layouts of each: " + others + " a step.";
  return *std::move(best);
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
  return job.parallelism.schedule == "auto" ? plan_any_order(profile, nodes, held, job)
                                            : plan_in_order(profile, nodes, held, job, false);
}

}  // namespace shoal::core
