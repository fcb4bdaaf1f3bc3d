#include "core/plan/candidate.hpp"

#include <algorithm>
#include <limits>

#include "base/assert.hpp"
#include "core/plan/chain_cut.hpp"
#include "core/plan/cuts.hpp"
#include "core/plan/losses.hpp"

namespace shoal::core::planning {

namespace {

// Aligned ranges may cost that much more before the balance wins.
constexpr double alignment_worth = 1.03;

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

/// `aligned`: on leaves of the tree, whatever that costs; else where it costs little.
bool share_micro_batches(const price_list& prices, candidate& c, bool aligned) {
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
  auto on_leaves = share_out(paces, prices.tree.micro_batches, prices.tree.leaf);
  if (!on_leaves) return !aligned;
  give(*on_leaves);
  if (!aligned && c.step_s > balanced_s * alignment_worth) give(*balanced);
  return true;
}

/// Cuts blocks and shares out micro-batches by turns, until all fits: each depends on the other.
class builder {
public:
  builder(const price_list& prices, std::vector<std::vector<worker>> chains)
    : prices_(prices), now_(chains.size()), fitting_(chains.size()) {
    for (auto& workers : chains) {
      // A first guess of its pace: perfect balance. Memory depends on micro-batches that follow.
      auto& replica = made_.chains.emplace_back();
      replica.workers = std::move(workers);
      double speed = 0;
      for (auto& w : replica.workers) speed += w.speed;
      replica.slowest_s = prices.cost.seconds(prices.cost.all_blocks(), false) / speed;
      replica.blocks = {prices.cost.all_blocks()};
      limited_ = limited_ || has_limits(replica);
    }
  }

  std::optional<candidate> run() {
    if (settle()) return std::move(made_);
    // A replica that begins inside a leaf of the tree has more sums in memory at once.
    if (!limited_ || prices_.tree.leaf == 1 || made_.chains.size() == 1) return std::nullopt;
    aligned_ = true;
    if (settle()) return std::move(made_);
    return std::nullopt;
  }

private:
  bool settle() {
    if (limited_ && !share_out()) return false;
    auto count = made_.chains.size();
    for (std::size_t r = 0; r < count; ++r)
      if (!cut_chain(r, now_[r])) return false;
    // At first each is cut for what it got last. Where that goes round in circles, those that do
    // not fit are cut for all they got so far, so that it ends.
    constexpr int rounds_max = 6, circles_max = 2;
    for (int round = 0; round < rounds_max; ++round) {
      if (!share_out()) return false;
      bool all_fit = true;
      for (std::size_t r = 0; all_fit && r < count; ++r) all_fit = still_fits(r);
      if (all_fit) return true;
      for (std::size_t r = 0; r < count; ++r) {
        auto load = now_[r];
        if (round >= circles_max) {
          if (still_fits(r)) continue;
          load = {std::max(load.micro_batches, fitting_[r].micro_batches),
                  std::max(load.sums, fitting_[r].sums)};
        }
        if (!cut_chain(r, load) && (load == now_[r] || !cut_chain(r, now_[r]))) return false;
      }
    }
    return false;
  }

  bool share_out() {
    if (!share_micro_batches(prices_, made_, aligned_)) return false;
    for (std::size_t r = 0; limited_ && r < now_.size(); ++r)
      now_[r] = load_of(prices_, made_.chains[r]);
    return true;
  }

  bool cut_chain(std::size_t r, chain_load load) {
    auto& replica = made_.chains[r];
    if (r > 0 && fitting_[r - 1] == load && have_like_workers(replica, made_.chains[r - 1])) {
      replica.blocks = made_.chains[r - 1].blocks;
      replica.recompute = made_.chains[r - 1].recompute;
    } else if (!cut(prices_, replica, load)) {
      return false;
    }
    fitting_[r] = load;
    set_pace(prices_, replica);
    return true;
  }

  bool still_fits(std::size_t r) const {
    return now_[r] == fitting_[r] || fits(prices_, made_.chains[r], now_[r]);
  }

  const price_list& prices_;
  candidate made_;
  bool limited_ = false;
  bool aligned_ = false;
  std::vector<chain_load> now_;      // by chain; all the same where memory has no limit
  std::vector<chain_load> fitting_;  // that for which the chain was cut
};

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
    for (stage_index s = 0; s < replica.stages(); ++s)
      one.stages.push_back({replica.workers[s].node, block_runs(replica.chunks_of(s)),
                            !replica.recompute.empty() && replica.recompute[s]});
  }
  return made;
}

std::optional<candidate> build(const price_list& prices, std::vector<std::vector<worker>> chains) {
  return builder(prices, std::move(chains)).run();
}

double least_seconds(const price_list& prices, const std::vector<chain_size>& chains) {
  // Replicas that end together after T take sum((T / slowest) - depth + 1) micro-batches, and the
  // slowest stage is at least an even share of the blocks.
  auto blocks_s = prices.cost.seconds(prices.cost.all_blocks(), false);
  double turns = prices.tree.micro_batches, turns_per_s = 0;
  bool whole = false;
  auto all = prices.cost.all_blocks();
  for (auto [stages, speed, memory_bytes] : chains) {
    // One sum of gradients, and one pass; of several chunks each may be under way by itself.
    auto passes = chunks_of(prices, stages) == 1 ? 1u : 0u;
    auto held = prices.cost.needed_bytes(all, passes, 1, false) - process_reserve_bytes;
    if (static_cast<double>(held + stages * process_reserve_bytes) > memory_bytes)
      return std::numeric_limits<double>::infinity();
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

bool fits(const price_list& prices, const candidate& c) {
  return std::ranges::all_of(c.chains, [&](auto& replica) { return fits(prices, replica); });
}

}  // namespace shoal::core::planning
