// PipeDream and PipeDream-2BW: 1F1B without a flush. In PipeDream an update follows every backward,
// so that forwards in flight have read older weights, which are kept for their backwards.
//
//   stages of 2 and 1 ranks (1F1B-RR): rank 0 takes micro-batches 0 2 4 .., rank 1 takes 1 3 5 ..,
//   rank 2 all; the chain of micro-batch m is m mod lcm(2, 1)
//
//   Narayanan et al., SOSP'19 (arXiv 1806.03377). A rank of stage s runs
//   (ranks of this and later stages - 1) / (ranks of stage s) forwards ahead. Weight stashing: F
//   reads the newest version, B the one that its F read. Vertical sync: F reads at every stage the
//   version that stage 0 read. Replicas of a stage update together, once a round of them.
//   2BW (ICML'21, arXiv 2006.09503): one update a batch, read by the batch after the next.

#include <algorithm>
#include <numeric>
#include <string>

#include "core/schedule/families.hpp"
#include "core/schedule/versions.hpp"
#include "core/schedule/warm_up.hpp"

namespace shoal::core::families {

namespace {

std::vector<std::uint32_t> replicas_of(const plan_options& options) {
  return options.replicas.empty() ? std::vector<std::uint32_t>(options.ranks, 1) : options.replicas;
}

/// The number of rounds after which routing repeats, at most `most` + 1.
std::uint64_t period_of(const std::vector<std::uint32_t>& replicas, std::uint64_t most) {
  std::uint64_t period = 1;
  for (auto r : replicas) period = std::min(std::lcm(period, std::uint64_t{r}), most + 1);
  return period;
}

result<void> check_replicas(const plan_options& options, bool synced) {
  auto replicas = replicas_of(options);
  std::uint64_t sum = 0;
  for (auto r : replicas) {
    if (r < 1) return illegal(options, "ranks on a stage", r, "a stage needs a rank", 0, 1);
    if (synced && r != replicas[0])
      return illegal(options, "ranks on a stage", r,
                     "one version travels through all stages, which must update as often", 0,
                     replicas[0]);
    sum += r;
  }
  if (sum != options.ranks)
    return illegal(options, "ranks", options.ranks, "its stages have " + std::to_string(sum), 0,
                   static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, plan_ranks_max)));
  auto m = options.micro_batches;
  auto period = period_of(replicas, plan_micro_batches_max);
  if (period > plan_ranks_max)
    return illegal(
      options, "micro-batches until routing repeats", static_cast<std::uint32_t>(period),
      "the least common multiple of the stages' ranks is too large", 0, plan_ranks_max);
  if (m % period != 0) {
    auto below = static_cast<std::uint32_t>(m - m % period);
    return illegal(options, "micro-batches", m,
                   "replicas of a stage update together, so each must get as many", below,
                   static_cast<std::uint32_t>(below + period));
  }
  return {};
}

/// One rank: micro-batches q, q + step, .. of stage s. `synced_lag` is stage 0's warm-up.
std::vector<cell> rank_order(const plan_options& options, virtual_stage s, bool last,
                             std::uint32_t q, std::uint32_t step, std::uint32_t warm_up,
                             std::uint32_t synced_lag) {
  bool synced = options.name == "pipedream-sync";
  std::vector<cell> order;
  std::vector<std::uint32_t> read;
  std::uint32_t newest = 0;
  take_turns(
    warm_up, options.micro_batches / step,
    [&](std::uint32_t k) {
      read.push_back(!synced ? newest : k > synced_lag ? k - synced_lag : 0);
      order.push_back({operation::forward, s, q + k * step, read[k]});
    },
    [&](std::uint32_t k) {
      auto m = q + k * step;
      if (options.recompute && !last) order.push_back({operation::recompute, s, m, read[k]});
      order.push_back({operation::backward, s, m, read[k]});
      order.push_back({operation::optimize, s, m, ++newest});
    });
  return with_drops(order);
}

}  // namespace

result<pipeline_plan> pipedream(const plan_options& options) {
  bool synced = options.name == "pipedream-sync";
  TRY_VOID(check_replicas(options, synced));
  auto replicas = replicas_of(options);
  auto plan = empty_plan(options);
  plan.weights = synced ? weight_semantics::vertical_sync : weight_semantics::stash;
  auto chains = period_of(replicas, plan_micro_batches_max);
  plan.placement.resize(chains);
  if (chains > 1)
    for (micro_batch_index m = 0; m < plan.micro_batches; ++m)
      plan.chain_of.push_back(static_cast<std::uint32_t>(m % chains));
  auto lag = (options.ranks - 1) / replicas[0];
  rank_index first = 0;
  for (virtual_stage s = 0; s < replicas.size(); ++s) {
    for (std::size_t c = 0; c < chains; ++c)
      plan.placement[c].push_back(first + static_cast<rank_index>(c % replicas[s]));
    auto warm_up = (options.ranks - 1 - first) / replicas[s];
    for (std::uint32_t q = 0; q < replicas[s]; ++q)
      plan.ranks[first + q] =
        rank_order(options, s, s + 1 == replicas.size(), q, replicas[s], warm_up, lag);
    first += replicas[s];
  }
  return plan;
}

result<pipeline_plan> double_buffered(const plan_options& options) {
  auto m = options.micro_batches;
  if (m < options.ranks)
    return illegal(options, "micro-batches", m,
                   "two versions of weights suffice from one for each rank on", 0, options.ranks);
  auto plan = empty_plan(options);
  plan.weights = weight_semantics::double_buffered;
  plan.batches = options.batches;
  plan.micro_batches = m * options.batches;
  plan.placement = {linear_placement(options.ranks)};
  // 1F1B through all batches; batch t reads version t-1 in every pass, and publishes t+1.
  auto version_of = [&](micro_batch_index k) { return k / m > 0 ? k / m - 1 : 0; };
  for (rank_index r = 0; r < options.ranks; ++r) {
    std::vector<cell> order;
    take_turns(
      options.ranks - 1 - r, plan.micro_batches,
      [&](std::uint32_t k) {
        order.push_back({operation::forward, r, k, version_of(k)});
      },
      [&](std::uint32_t k) {
        if (options.recompute && r + 1 < options.ranks)
          order.push_back({operation::recompute, r, k, version_of(k)});
        order.push_back({operation::backward, r, k, version_of(k)});
        if ((k + 1) % m == 0) order.push_back({operation::optimize, r, none, k / m + 1});
      });
    plan.ranks[r] = with_drops(order);
  }
  return plan;
}

}  // namespace shoal::core::families
