#include "core/plan/moves.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/assert.hpp"
#include "core/plan/cuts.hpp"

namespace shoal::core::planning {

namespace {

struct held {
  block_runs blocks;
  place at;
};
using holdings = std::unordered_map<node_id, held>;

holdings holdings_of(const layout& present) {
  holdings all;
  for (replica_index r = 0; r < present.replicas.size(); ++r)
    for (stage_index s = 0; s < present.replicas[r].stages.size(); ++s) {
      auto& one = present.replicas[r].stages[s];
      all[one.node] = {one.blocks, {r, s}};
    }
  return all;
}

index_range overlap(index_range a, index_range b) {
  index_range both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.begin < both.end ? both : index_range{};
}

std::uint64_t kept_bytes(const costs& cost, const holdings& now, node_id node,
                         std::span<const index_range> chunks) {
  auto found = now.find(node);
  if (found == now.end()) return 0;
  std::uint64_t bytes = 0;
  for (auto held : found->second.blocks.chunks())
    for (auto chunk : chunks) bytes += cost.held_bytes(overlap(held, chunk));
  return bytes;
}

/// What the stage's node must fetch.
std::uint64_t fetched_bytes(const costs& cost, const holdings& now, const chain& replica,
                            stage_index s) {
  auto chunks = replica.chunks_of(s);
  std::uint64_t bytes = 0;
  for (auto chunk : chunks) bytes += cost.held_bytes(chunk);
  return bytes - kept_bytes(cost, now, replica.workers[s].node, chunks);
}

/// What it is worth that `node` takes the place: bytes first, then staying where it is.
std::int64_t worth(const costs& cost, const holdings& now, node_id node,
                   std::span<const index_range> chunks, place at) {
  auto bytes = static_cast<std::int64_t>(kept_bytes(cost, now, node, chunks));
  auto found = now.find(node);
  return 2 * bytes + (found != now.end() && found->second.at == at ? 1 : 0);
}

/// Gives all places to nodes of `pool`, as the class and memory of each allow.
void reassign(const price_list& prices, candidate& c, std::vector<worker> pool,
              const holdings& now) {
  std::sort(pool.begin(), pool.end(), [](auto& a, auto& b) { return a.node < b.node; });
  std::vector<std::vector<std::int64_t>> values;
  for (replica_index r = 0; r < c.chains.size(); ++r) {
    auto& replica = c.chains[r];
    auto needed = needed_bytes(prices, replica);
    for (stage_index s = 0; s < replica.workers.size(); ++s) {
      auto& row = values.emplace_back();
      auto chunks = replica.chunks_of(s);
      for (auto& w : pool) {
        bool may = w.speed == replica.workers[s].speed && needed[s] <= w.memory_bytes;
        row.push_back(may ? worth(prices.cost, now, w.node, chunks, {r, s}) : -1);
      }
    }
  }
  auto chosen = assign(values);
  auto next = chosen.begin();
  for (auto& replica : c.chains)
    for (auto& w : replica.workers) w = pool[*next++];
}

/// Moves the cuts of one chain towards what its nodes hold.
void recut(const price_list& prices, chain& replica, const holdings& now, double seconds_each) {
  auto stage_count = replica.stages();
  if (replica.blocks.size() != stage_count) return;  // a bound on each chunk would bound no stage
  auto better = recut_blocks(
    prices.cost.block_count(), stage_count, seconds_each,
    [&](stage_index s, index_range blocks) {
      return prices.cost.seconds(blocks, recomputes(prices, replica, s)) / replica.workers[s].speed;
    },
    [&](stage_index s, index_range blocks) {
      return kept_bytes(prices.cost, now, replica.workers[s].node, {&blocks, 1});
    });
  if (!better) return;
  auto before = std::exchange(replica.blocks, std::move(*better));
  if (!fits(prices, replica)) replica.blocks = std::move(before);
}

}  // namespace

std::uint64_t moved_bytes(const costs& cost, const candidate& c, const layout& present) {
  if (present.replicas.empty()) return 0;
  auto now = holdings_of(present);
  std::uint64_t bytes = 0;
  for (auto& replica : c.chains)
    for (stage_index s = 0; s < replica.stages(); ++s)
      bytes += fetched_bytes(cost, now, replica, s);
  return bytes;
}

double pause_seconds(const costs& cost, const candidate& c, const layout& present) {
  auto now = holdings_of(present);
  std::uint64_t most = 0;
  for (auto& replica : c.chains)
    for (stage_index s = 0; s < replica.stages(); ++s)
      most = std::max(most, fetched_bytes(cost, now, replica, s));
  return cost.bulk_seconds(most);
}

void settle(const price_list& prices, candidate& c, const std::vector<worker>& pool,
            const layout& present, double step_limit_s) {
  c.moved_bytes = 0;
  if (present.replicas.empty()) return;
  auto now = holdings_of(present);
  reassign(prices, c, pool, now);
  auto shifted = c;
  for (auto& replica : shifted.chains) {
    auto turns = replica.micro_batches.size() + replica.workers.size() - 1;
    auto allowed = (step_limit_s - c.exchange_s - replica.fill_s) / static_cast<double>(turns);
    // What the chain takes now is allowed anyway.
    recut(prices, replica, now, std::max(allowed, replica.slowest_s));
  }
  reprice(prices, shifted);
  if (shifted.step_s <= step_limit_s && shifted.shape() != c.shape()) {
    c = std::move(shifted);
    reassign(prices, c, pool, now);
  }
  c.moved_bytes = moved_bytes(prices.cost, c, present);
}

std::vector<std::size_t> assign(const std::vector<std::vector<std::int64_t>>& values) {
  // The Hungarian method with potentials, a row at a time (Kuhn; Jonker and Volgenant's form).
  constexpr std::int64_t forbidden = std::int64_t{1} << 53,
                         none = std::numeric_limits<std::int64_t>::max();
  auto rows = values.size(), columns = rows == 0 ? 0 : values[0].size();
  SHOAL_ASSERT(rows <= columns);
  std::vector<std::int64_t> row_price(rows + 1, 0), column_price(columns + 1, 0);
  std::vector<std::size_t> row_of(columns + 1, 0), way(columns + 1, 0);
  for (std::size_t i = 1; i <= rows; ++i) {
    row_of[0] = i;
    std::size_t at = 0;
    std::vector<std::int64_t> least(columns + 1, none);
    std::vector<char> seen(columns + 1, 0);
    do {
      seen[at] = 1;
      auto row = row_of[at];
      auto& row_values = values[row - 1];
      auto delta = none;
      std::size_t next = 0;
      for (std::size_t j = 1; j <= columns; ++j) {
        if (seen[j]) continue;
        auto cost = row_values[j - 1] < 0 ? forbidden : -row_values[j - 1];
        auto reduced = cost - row_price[row] - column_price[j];
        if (reduced < least[j]) least[j] = reduced, way[j] = at;
        if (least[j] < delta) delta = least[j], next = j;
      }
      for (std::size_t j = 0; j <= columns; ++j) {
        if (seen[j])
          row_price[row_of[j]] += delta, column_price[j] -= delta;
        else if (j != 0)
          least[j] -= delta;
      }
      at = next;
    } while (row_of[at] != 0);
    for (; at != 0; at = way[at]) row_of[at] = row_of[way[at]];
  }
  std::vector<std::size_t> chosen(rows, 0);
  for (std::size_t j = 1; j <= columns; ++j)
    if (row_of[j] != 0) chosen[row_of[j] - 1] = j - 1;
  return chosen;
}

}  // namespace shoal::core::planning
