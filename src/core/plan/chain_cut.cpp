#include "core/plan/chain_cut.hpp"

#include <limits>
#include <optional>

#include "core/plan/cuts.hpp"

namespace shoal::core::planning {

namespace {

/// The best cut of all, if only it fits.
bool cut_freely(const price_list& prices, chain& replica, chain_load load) {
  std::vector<double> speeds;
  for (auto& w : replica.workers) speeds.push_back(w.speed);
  auto& blocks = prices.free.of(speeds, chunks_of(prices, replica.stages()));
  if (!blocks) return false;
  replica.blocks = *blocks;
  replica.recompute.clear();
  return fits(prices, replica, load);
}

/// The best cut that fits; `again`: its parts may recompute, all but the last.
std::optional<std::vector<index_range>> cut_within(const price_list& prices, const chain& replica,
                                                   chain_load load, bool again) {
  auto stages = replica.stages();
  auto chunks = chunks_of(prices, stages), parts = stages * chunks;
  bool always = prices.job.training.recompute == recompute_rule::always;
  auto seconds = [&](stage_index part, index_range blocks, bool recompute) {
    return prices.cost.seconds(blocks, recompute) / replica.workers[part % stages].speed;
  };
  auto counts = stash_counts(prices, stages, load.micro_batches);
  auto fits = [&](stage_index part, index_range blocks, bool recompute) {
    // With several chunks each may take its share; `fits` of the chain looks at their sum.
    auto passes = (counts[part % stages] + chunks - 1) / chunks;
    auto needed = prices.cost.needed_bytes(blocks, passes, load.sums, recompute);
    return process_reserve_bytes + (needed - process_reserve_bytes) * chunks <=
           replica.workers[part % stages].memory_bytes;
  };
  auto within = [&](stage_index part, index_range blocks) {
    bool may = again && part + 1 < parts;
    if (!(may && always) && fits(part, blocks, false)) return seconds(part, blocks, false);
    return may && fits(part, blocks, true) ? seconds(part, blocks, true)
                                           : std::numeric_limits<double>::infinity();
  };
  return cut_chunks(prices.cost.block_count(), stages, chunks, within);
}

}  // namespace

bool cut(const price_list& prices, chain& replica, chain_load load) {
  if (cut_freely(prices, replica, load)) {
    choose_recompute(prices, replica, load);
    return true;
  }
  if (!has_limits(replica)) return false;
  auto rule = prices.job.training.recompute;
  // Chunks of a stage recompute together, so a chain of several is tried without first.
  bool several = chunks_of(prices, replica.stages()) > 1;
  bool plainly = rule == recompute_rule::as_needed && several;
  for (bool again : {false, true}) {
    if (again ? rule == recompute_rule::never : rule != recompute_rule::never && !plainly) continue;
    auto blocks = cut_within(prices, replica, load, again);
    if (!blocks) continue;
    replica.blocks = std::move(*blocks);
    choose_recompute(prices, replica, load);
    if (!several || fits(prices, replica, load)) return true;
  }
  return false;
}

}  // namespace shoal::core::planning
