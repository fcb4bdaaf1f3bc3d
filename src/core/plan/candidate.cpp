#include "core/plan/candidate.hpp"

#include <algorithm>
#include <limits>

#include "base/assert.hpp"
#include "core/plan/cuts.hpp"
#include "core/plan/losses.hpp"
#include "core/schedule/schedule.hpp"

namespace shoal::core::planning {

namespace {

// Aligned ranges may cost that much more before the balance wins.
constexpr double alignment_worth = 1.03;

struct memory_use {
  std::vector<std::uint32_t> stash_counts;  // by stage
  std::uint32_t slot_count = 0;
};

memory_use memory_of(const price_list& prices, const chain& replica) {
  memory_use use;
  schedule_options options{.name = to_string(prices.order),
                           .stage_count = replica.stages(),
                           .micro_batches = replica.micro_batches,
                           .recompute = std::vector<bool>(replica.stages(), true),
                           .chunks = chunks_of(prices, replica.stages())};
  // The least that the order needs: what is ahead of it is fitted to the memory that is left.
  if (prices.order == stage_order::varuna) options.ahead.assign(replica.stages(), 0);
  for (stage_index s = 0; s < replica.stages(); ++s)
    use.stash_counts.push_back(stash_peak_of(options, s).value());
  use.slot_count = accumulate(prices.tree, replica.micro_batches).slot_count;
  return use;
}

bool has_limits(const chain& replica) {
  return std::any_of(replica.workers.begin(), replica.workers.end(),
                     [](auto& w) { return w.memory_bytes != UINT64_MAX; });
}

bool alike(const chain& a, const chain& b) {
  return have_like_workers(a, b) && (!has_limits(a) || a.micro_batches == b.micro_batches);
}

/// Cuts the chain; `again`: its parts may recompute, all but the last. Nothing when some stage
/// would not fit.
std::optional<std::vector<index_range>> cut(const price_list& prices, const chain& replica,
                                            bool again) {
  auto stages = replica.stages();
  auto chunks = chunks_of(prices, stages), parts = stages * chunks;
  bool always = prices.job.training.recompute == recompute_rule::always;
  auto seconds = [&](stage_index part, index_range blocks, bool recompute) {
    return prices.cost.seconds(blocks, recompute) / replica.workers[part % stages].speed;
  };
  if (!has_limits(replica))
    return cut_chunks(prices.cost.block_count(), stages, chunks,
                      [&](stage_index part, index_range blocks) {
                        return seconds(part, blocks, always && part + 1 < parts);
                      });
  auto use = memory_of(prices, replica);
  auto fits = [&](stage_index part, index_range blocks, bool recompute) {
    // With several chunks each may take its share; `fits` looks at their sum.
    auto passes = (use.stash_counts[part % stages] + chunks - 1) / chunks;
    auto needed = prices.cost.needed_bytes(blocks, passes, use.slot_count, recompute);
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

/// The best cut that fits, with as little recomputed as that takes.
bool cut(const price_list& prices, chain& replica) {
  auto rule = prices.job.training.recompute;
  // Chunks of a stage recompute together, so a chain of several is tried without first.
  bool plainly = rule == recompute_rule::as_needed && chunks_of(prices, replica.stages()) > 1;
  for (bool again : {false, true}) {
    if (again ? rule == recompute_rule::never : rule != recompute_rule::never && !plainly) continue;
    auto blocks = cut(prices, replica, again);
    if (!blocks) continue;
    replica.blocks = std::move(*blocks);
    choose_recompute(prices, replica);
    if (again || !plainly || fits(prices, replica)) return true;
  }
  return false;
}

/// Micro-batches between the first stage's forward and backward passes, at most.
double in_flight_max(stage_order order, double stages, double chunks) {
  switch (order) {
    case stage_order::eager:
      return 2 * stages - 1;
    case stage_order::interleaved:
      return chunks > 1 ? (stages * (chunks + 1) - 1) / chunks : stages;
    case stage_order::gpipe:
    case stage_order::searched:
    case stage_order::varuna:
      return std::numeric_limits<double>::infinity();
    default:
      return stages;
  }
}

/// How a cut chain moves: its slowest stage, and the way through.
void set_pace(const price_list& prices, chain& replica) {
  auto stages = replica.stages();
  auto parts = static_cast<stage_index>(replica.blocks.size());
  replica.fill_s = 0;
  struct load {
    double forward = 0, whole = 0, link = 0;
  };
  std::vector<load> loads(stages);  // a micro-batch, of each worker and of the link into it
  double hop = 0;
  for (stage_index part = 0; part < parts; ++part) {
    auto& host = loads[part % stages];
    auto speed = replica.workers[part % stages].speed;
    auto again = recomputes(prices, replica, part);
    host.whole += prices.cost.seconds(replica.blocks[part], again) / speed;
    host.forward += prices.cost.forward_seconds(replica.blocks[part]) / speed;
    if (part == 0) continue;
    auto transfer = prices.cost.transfer_seconds(replica.blocks[part].begin);
    host.link += transfer;
    replica.fill_s += 2 * (transfer + prices.cost.latency_seconds());
    hop = std::max(hop, transfer + prices.cost.latency_seconds());
  }
  replica.slowest_s = 0;
  double compute_s = 0;
  for (auto& l : loads) {
    compute_s = std::max(compute_s, l.whole);
    // GPipe's phases load one direction of the link each, the others both at once.
    auto apart = std::max(l.forward, l.link) + std::max(l.whole - l.forward, l.link);
    auto both = std::max(l.whole, l.link);
    replica.slowest_s =
      std::max(replica.slowest_s, prices.order == stage_order::gpipe ? apart : both);
  }
  // A micro-batch is on its way through all stages and back while as many as the first stage holds
  // run: with few of them in flight and far hops, that is what a turn takes.
  auto way_s = stages * compute_s + 2 * hop * (parts - 1);
  auto in_flight = in_flight_max(prices.order, stages, static_cast<double>(parts) / stages);
  replica.slowest_s = std::max(replica.slowest_s, way_s / in_flight);
}

/// Several chunks fill the pipeline a chunk's time a stage.
pace pace_of(const chain& replica) {
  auto chunks = static_cast<double>(replica.blocks.size()) / replica.stages();
  return {replica.slowest_s, (replica.stages() - 1) / chunks, replica.fill_s};
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
  c.redo_s = 0;
  if (!c.is_redundant())
    c.redo_s = c.step_s * loss_share(c.worker_count(), c.step_s * redone_steps(prices.job),
                                     prices.job.nodes.mean_life);
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

std::uint32_t chunks_of(const price_list& prices, stage_index stages) {
  if (prices.order != stage_order::interleaved || stages == 1) return 1;
  auto wanted = prices.job.parallelism.chunks == 0 ? 2 : prices.job.parallelism.chunks;
  return std::clamp(prices.cost.block_count() / stages, 1u, wanted);
}

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
    for (stage_index s = 0; s < replica.stages(); ++s)
      one.stages.push_back({replica.workers[s].node, block_runs(replica.chunks_of(s)),
                            !replica.recompute.empty() && replica.recompute[s]});
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
    replica.slowest_s = prices.cost.seconds(prices.cost.all_blocks(), false) / speed;
    replica.blocks = {prices.cost.all_blocks()};
  }
  if (std::ranges::any_of(c.chains, has_limits) && !share_micro_batches(prices, c))
    return std::nullopt;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t r = 0; r < c.chains.size(); ++r) {
      auto& replica = c.chains[r];
      if (r > 0 && alike(replica, c.chains[r - 1])) {
        replica.blocks = c.chains[r - 1].blocks;
        replica.recompute = c.chains[r - 1].recompute;
      } else if (!cut(prices, replica)) {
        return std::nullopt;
      }
      set_pace(prices, replica);
    }
    if (!share_micro_batches(prices, c)) return std::nullopt;
    if (fits(prices, c)) return c;
  }
  return std::nullopt;
}

double least_seconds(const price_list& prices, const std::vector<chain_size>& chains) {
  // Replicas that end together after T take sum((T / slowest) - depth + 1) micro-batches, and the
  // slowest stage is at least an even share of the blocks.
  auto blocks_s = prices.cost.seconds(prices.cost.all_blocks(), false);
  double turns = prices.tree.micro_batches, turns_per_s = 0;
  bool whole = false;
  for (auto [stages, speed] : chains) {
    turns += (stages - 1.0) / chunks_of(prices, stages);
    turns_per_s += speed / blocks_s;
    whole |= stages == 1;
  }
  // Whoever has all blocks alone exchanges all gradients.
  auto count = static_cast<std::uint32_t>(chains.size());
  auto exchange_s = whole ? prices.cost.exchange_seconds(prices.cost.all_blocks(), count, 1) : 0;
  return turns / turns_per_s + exchange_s;
}

void reprice(const price_list& prices, candidate& c) {
  for (auto& replica : c.chains) set_pace(prices, replica);
  set_step(prices, c);
}

bool recomputes(const price_list& prices, const chain& replica, std::size_t part) {
  auto rule = prices.job.training.recompute;
  if (part + 1 == replica.blocks.size() || rule == recompute_rule::never) return false;
  return rule == recompute_rule::always ||
         (!replica.recompute.empty() && replica.recompute[part % replica.stages()]);
}

void choose_recompute(const price_list& prices, chain& replica) {
  replica.recompute.clear();
  if (prices.job.training.recompute != recompute_rule::as_needed || !has_limits(replica)) return;
  auto plain = needed_bytes(prices, replica);
  for (stage_index s = 0; s < replica.stages(); ++s)
    replica.recompute.push_back(s < replica.blocks.size() - 1 &&
                                plain[s] > replica.workers[s].memory_bytes);
}

std::uint64_t needed_bytes(const price_list& prices, const chain& replica, stage_index s,
                           std::uint32_t stash_count) {
  auto slots = accumulate(prices.tree, replica.micro_batches).slot_count;
  return prices.cost.needed_bytes(replica.chunks_of(s), stash_count, slots,
                                  recomputes(prices, replica, s));
}

std::vector<std::uint64_t> needed_bytes(const price_list& prices, const chain& replica) {
  auto use = memory_of(prices, replica);
  std::vector<std::uint64_t> bytes;
  for (stage_index s = 0; s < replica.stages(); ++s)
    bytes.push_back(needed_bytes(prices, replica, s, use.stash_counts[s]));
  return bytes;
}

bool fits(const price_list& prices, const chain& replica) {
  if (!has_limits(replica)) return true;
  auto needed = needed_bytes(prices, replica);
  for (stage_index s = 0; s < needed.size(); ++s)
    if (needed[s] > replica.workers[s].memory_bytes) return false;
  return true;
}

bool fits(const price_list& prices, const candidate& c) {
  return std::ranges::all_of(c.chains, [&](auto& replica) { return fits(prices, replica); });
}

}  // namespace shoal::core::planning
