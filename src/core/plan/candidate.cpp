#include "core/plan/candidate.hpp"

#include <algorithm>
#include <limits>

#include "base/assert.hpp"
#include "core/plan/cuts.hpp"
#include "core/schedule/schedule.hpp"

namespace shoal::core::planning {

namespace {

// Aligned ranges may cost that much more before the balance wins.
constexpr double alignment_worth = 1.03;

struct memory_use {
  std::vector<std::uint32_t> stash_counts;  // by stage
  std::uint32_t slot_count = 0;
};

memory_use memory_of(const price_list& prices, stage_index stage_count, index_range micro_batches) {
  memory_use use;
  schedule_options options{.name = prices.job.parallelism.schedule,
                           .stage_count = stage_count,
                           .micro_batches = micro_batches};
  for (stage_index s = 0; s < stage_count; ++s)
    use.stash_counts.push_back(stash_peak_of(options, s).value());
  use.slot_count = accumulate(prices.tree, micro_batches).slot_count;
  return use;
}

bool has_limits(const chain& replica) {
  return std::any_of(replica.workers.begin(), replica.workers.end(),
                     [](auto& w) { return w.memory_bytes != UINT64_MAX; });
}

bool alike(const chain& a, const chain& b) {
  return std::equal(a.workers.begin(), a.workers.end(), b.workers.begin(), b.workers.end(),
                    [](auto& x, auto& y) {
                      return x.speed == y.speed && x.memory_bytes == y.memory_bytes;
                    }) &&
         (!has_limits(a) || a.micro_batches == b.micro_batches);
}

std::optional<std::vector<index_range>> cut(const price_list& prices, const chain& replica) {
  auto stage_count = static_cast<stage_index>(replica.workers.size());
  memory_use use;
  bool limited = has_limits(replica);
  if (limited) use = memory_of(prices, stage_count, replica.micro_batches);
  return cut_blocks(prices.cost.block_count(), stage_count, [&](stage_index s, index_range blocks) {
    auto& host = replica.workers[s];
    bool is_last = s + 1 == stage_count;
    if (limited && prices.cost.needed_bytes(blocks, use.stash_counts[s], use.slot_count, is_last) >
                     host.memory_bytes)
      return std::numeric_limits<double>::infinity();
    return prices.cost.seconds(blocks, is_last) / host.speed;
  });
}

/// How a cut chain moves: its slowest stage, and the way through.
void set_pace(const price_list& prices, chain& replica) {
  auto stage_count = static_cast<stage_index>(replica.workers.size());
  auto& schedule = prices.job.parallelism.schedule;
  replica.slowest_s = replica.fill_s = 0;
  double hop = 0;
  for (stage_index s = 0; s < stage_count; ++s) {
    auto time =
      prices.cost.seconds(replica.blocks[s], s + 1 == stage_count) / replica.workers[s].speed;
    replica.slowest_s = std::max(replica.slowest_s, time);
    if (s == 0) continue;
    auto transfer = prices.cost.transfer_seconds(replica.blocks[s].begin);
    // GPipe's phases load one direction of the link each, the others both at once.
    auto forward = prices.cost.forward_seconds(replica.blocks[s]) / replica.workers[s].speed;
    auto apart = std::max(forward, transfer) + std::max(time - forward, transfer);
    replica.slowest_s = std::max(replica.slowest_s, schedule == "gpipe" ? apart : transfer);
    replica.fill_s += 2 * (transfer + prices.cost.latency_seconds());
    hop = std::max(hop, transfer + prices.cost.latency_seconds());
  }
  // A micro-batch is on its way through all stages and back while as many as the first stage holds
  // run: with few of them in flight and far hops, that is what a turn takes. GPipe holds all.
  if (schedule == "gpipe") return;
  auto in_flight = schedule == "1f1b" ? stage_count : 2 * stage_count - 1;
  auto way_s = stage_count * replica.slowest_s + 2 * hop * (stage_count - 1);
  replica.slowest_s = std::max(replica.slowest_s, way_s / in_flight);
}

pace pace_of(const chain& replica) {
  return {replica.slowest_s, static_cast<double>(replica.workers.size() - 1), replica.fill_s};
}

/// Steps that a loss undoes where a block has no second holder: half of what lies between two
/// checkpoints.
double redo_steps(const job_options& job) {
  return (job.checkpoint.every != 0 ? job.checkpoint.every : job.training.steps) / 2.0;
}

double losses_per_step(const job_options& job, const candidate& c) {
  auto life_s = std::chrono::duration<double>(job.nodes.mean_life).count();
  return life_s > 0 ? static_cast<double>(c.worker_count()) * c.step_s / life_s : 0;
}

/// The step's time for the ranges that the chains have.
void set_step(const price_list& prices, candidate& c) {
  c.step_s = c.exchange_s = 0;
  std::size_t pieces = 1;
  for (auto& replica : c.chains) {
    c.step_s = std::max(c.step_s, pace_of(replica).finish(replica.micro_batches.size()));
    // No range has more pieces than micro-batches.
    if (c.is_redundant() && replica.micro_batches.size() > pieces)
      pieces = std::max(pieces, pieces_of(prices.tree, replica.micro_batches).size());
  }
  // Later stages end their backward passes earlier and exchange meanwhile: only stage 0 shows.
  for (auto& replica : c.chains)
    c.exchange_s = std::max(
      c.exchange_s,
      prices.cost.exchange_seconds(replica.blocks[0], static_cast<std::uint32_t>(c.chains.size()),
                                   static_cast<std::uint32_t>(pieces)));
  c.step_s += c.exchange_s;
  c.redo_s =
    c.is_redundant() ? 0 : c.step_s * losses_per_step(prices.job, c) * redo_steps(prices.job);
}

bool share_micro_batches(const price_list& prices, candidate& c) {
  std::vector<pace> paces;
  for (auto& replica : c.chains) paces.push_back(pace_of(replica));
  auto give = [&](const std::vector<index_range>& ranges) {
    for (std::size_t r = 0; r < ranges.size(); ++r) c.chains[r].micro_batches = ranges[r];
    set_step(prices, c);
  };
  auto balanced = share_out(paces, prices.tree.micro_batches, 1);
  if (!balanced) return false;
  give(*balanced);
  if (prices.tree.leaf == 1 || c.chains.size() == 1) return true;
  auto balanced_s = c.step_s;
  if (auto aligned = share_out(paces, prices.tree.micro_batches, prices.tree.leaf)) {
    give(*aligned);
    if (c.step_s > balanced_s * alignment_worth) give(*balanced);
  }
  return true;
}

}  // namespace

std::size_t candidate::worker_count() const {
  std::size_t count = 0;
  for (auto& replica : chains) count += replica.workers.size();
  return count;
}

layout candidate::shape() const {
  layout made;
  for (auto& replica : chains) {
    auto& one = made.replicas.emplace_back();
    one.micro_batches = replica.micro_batches;
    for (std::size_t s = 0; s < replica.workers.size(); ++s)
      one.stages.push_back({replica.workers[s].node, replica.blocks[s]});
  }
  return made;
}

std::optional<candidate> build(const price_list& prices, std::vector<std::vector<worker>> chains) {
  candidate c;
  for (auto& workers : chains) {
    // A first guess of its pace: perfect balance. Memory depends on the micro-batches that follow.
    auto& replica = c.chains.emplace_back();
    replica.workers = std::move(workers);
    double speed = 0;
    for (auto& w : replica.workers) speed += w.speed;
    replica.slowest_s = prices.cost.seconds(prices.cost.all_blocks(), true) / speed;
    replica.blocks = {prices.cost.all_blocks()};
  }
  if (!share_micro_batches(prices, c)) return std::nullopt;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t r = 0; r < c.chains.size(); ++r) {
      auto& replica = c.chains[r];
      if (r > 0 && alike(replica, c.chains[r - 1])) {
        replica.blocks = c.chains[r - 1].blocks;
      } else if (auto blocks = cut(prices, replica)) {
        replica.blocks = std::move(*blocks);
      } else {
        return std::nullopt;
      }
      set_pace(prices, replica);
    }
    if (!share_micro_batches(prices, c)) return std::nullopt;
    if (fits(prices, c)) return c;
  }
  return std::nullopt;
}

double least_seconds(const price_list& prices, const std::vector<std::vector<worker>>& chains) {
  // Replicas that end together after T take sum((T / slowest) - depth + 1) micro-batches, and the
  // slowest stage is at least an even share of the blocks.
  auto blocks_s = prices.cost.seconds(prices.cost.all_blocks(), true);
  double turns = prices.tree.micro_batches, turns_per_s = 0;
  for (auto& workers : chains) {
    double speed = 0;
    for (auto& w : workers) speed += w.speed;
    turns += static_cast<double>(workers.size() - 1);
    turns_per_s += speed / blocks_s;
  }
  // Whoever has all blocks alone exchanges all gradients.
  bool whole =
    std::any_of(chains.begin(), chains.end(), [](auto& workers) { return workers.size() == 1; });
  auto count = static_cast<std::uint32_t>(chains.size());
  auto exchange_s = whole ? prices.cost.exchange_seconds(prices.cost.all_blocks(), count, 1) : 0;
  return turns / turns_per_s + exchange_s;
}

void reprice(const price_list& prices, candidate& c) {
  for (auto& replica : c.chains) set_pace(prices, replica);
  set_step(prices, c);
}

std::vector<std::uint64_t> needed_bytes(const price_list& prices, const chain& replica) {
  auto stage_count = static_cast<stage_index>(replica.workers.size());
  auto use = memory_of(prices, stage_count, replica.micro_batches);
  std::vector<std::uint64_t> bytes;
  for (stage_index s = 0; s < stage_count; ++s)
    bytes.push_back(prices.cost.needed_bytes(replica.blocks[s], use.stash_counts[s], use.slot_count,
                                             s + 1 == stage_count));
  return bytes;
}

bool fits(const price_list& prices, const candidate& c) {
  for (auto& replica : c.chains) {
    if (!has_limits(replica)) continue;
    auto needed = needed_bytes(prices, replica);
    for (stage_index s = 0; s < needed.size(); ++s)
      if (needed[s] > replica.workers[s].memory_bytes) return false;
  }
  return true;
}

}  // namespace shoal::core::planning
