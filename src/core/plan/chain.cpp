#include "core/plan/chain.hpp"

#include <algorithm>

#include "core/schedule/schedule.hpp"

namespace shoal::core::planning {

namespace {

std::uint64_t stage_bytes(const price_list& prices, const chain& replica, stage_index s,
                          std::uint32_t stash_count, std::uint32_t sums) {
  auto again = recomputes(prices, replica, s);
  if (replica.blocks.size() == replica.stages())
    return prices.cost.needed_bytes(replica.blocks[s], stash_count, sums, again);
  return prices.cost.needed_bytes(replica.chunks_of(s), stash_count, sums, again);
}

}  // namespace

std::vector<index_range> chain::chunks_of(stage_index s) const {
  std::vector<index_range> mine;
  for (auto part = s; part < blocks.size(); part += stages()) mine.push_back(blocks[part]);
  return mine;
}

bool have_like_workers(const chain& a, const chain& b) {
  return std::ranges::equal(a.workers, b.workers, [](auto& x, auto& y) {
    return x.speed == y.speed && x.memory_bytes == y.memory_bytes;
  });
}

bool has_limits(const chain& replica) {
  return std::ranges::any_of(replica.workers, [](auto& w) { return w.memory_bytes != UINT64_MAX; });
}

std::uint32_t chunks_of(const price_list& prices, stage_index stages) {
  if (prices.order != stage_order::interleaved || stages == 1) return 1;
  auto wanted = prices.job.parallelism.chunks == 0 ? 2 : prices.job.parallelism.chunks;
  return std::clamp(prices.cost.block_count() / stages, 1u, wanted);
}

bool recomputes(const price_list& prices, const chain& replica, std::size_t part) {
  auto rule = prices.job.training.recompute;
  if (part + 1 == replica.blocks.size() || rule == recompute_rule::never) return false;
  return rule == recompute_rule::always ||
         (!replica.recompute.empty() && replica.recompute[part % replica.stages()]);
}

chain_load load_of(const price_list& prices, const chain& replica) {
  return {replica.micro_batches.size(), slot_count_of(prices.tree, replica.micro_batches)};
}

std::vector<std::uint32_t> stash_counts(const price_list& prices, stage_index stages,
                                        std::uint32_t micro_batches) {
  schedule_options options{.name = to_string(prices.order),
                           .stage_count = stages,
                           .micro_batches = {0, micro_batches},
                           .recompute = std::vector<bool>(stages, true),
                           .chunks = chunks_of(prices, stages)};
  // The least that the order needs: what is ahead of it is fitted to the memory that is left.
  if (prices.order == stage_order::varuna) options.ahead.assign(stages, 0);
  return stash_peaks_of(options).value();
}

std::vector<std::uint64_t> needed_bytes(const price_list& prices, const chain& replica) {
  return needed_bytes(prices, replica, load_of(prices, replica));
}

std::vector<std::uint64_t> needed_bytes(const price_list& prices, const chain& replica,
                                        chain_load load) {
  auto counts = stash_counts(prices, replica.stages(), load.micro_batches);
  std::vector<std::uint64_t> bytes;
  for (stage_index s = 0; s < replica.stages(); ++s)
    bytes.push_back(stage_bytes(prices, replica, s, counts[s], load.sums));
  return bytes;
}

std::uint64_t needed_bytes(const price_list& prices, const chain& replica, stage_index s,
                           std::uint32_t stash_count) {
  return stage_bytes(prices, replica, s, stash_count, load_of(prices, replica).sums);
}

bool fits(const price_list& prices, const chain& replica) {
  return !has_limits(replica) || fits(prices, replica, load_of(prices, replica));
}

bool fits(const price_list& prices, const chain& replica, chain_load load) {
  if (!has_limits(replica)) return true;
  auto needed = needed_bytes(prices, replica, load);
  for (stage_index s = 0; s < replica.stages(); ++s)
    if (needed[s] > replica.workers[s].memory_bytes) return false;
  return true;
}

void choose_recompute(const price_list& prices, chain& replica) {
  choose_recompute(prices, replica, load_of(prices, replica));
}

void choose_recompute(const price_list& prices, chain& replica, chain_load load) {
  replica.recompute.clear();
  if (prices.job.training.recompute != recompute_rule::as_needed || !has_limits(replica)) return;
  auto plain = needed_bytes(prices, replica, load);
  for (stage_index s = 0; s < replica.stages(); ++s)
    replica.recompute.push_back(s < replica.blocks.size() - 1 &&
                                plain[s] > replica.workers[s].memory_bytes);
}

}  // namespace shoal::core::planning
