#include "core/plan/search.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/plan/partition_grid.hpp"
#include "core/plan/partition_order.hpp"

namespace shoal::core::planning {

namespace {

constexpr double class_width = 0.98;
// A node at less than half of the usual speed may hold the others up more than it helps.
constexpr double slow = 0.5;
constexpr std::size_t dropped_max = 4;
// Attempts come in order of what they could reach; after so many that bettered nothing, it is over.
constexpr std::size_t patience = 64;

using depth_list = std::vector<std::uint32_t>;  // of each replica, deepest first

/// All nodes over any number of replicas, as evenly as can be; with a fixed depth, replicas of that
/// depth and one of what is left over.
std::vector<depth_list> depth_lists(std::uint32_t nodes, std::uint32_t blocks,
                                    std::uint32_t micro_batches, std::uint32_t fixed_depth) {
  std::vector<depth_list> lists;
  if (fixed_depth != 0) {
    auto depth = std::min(fixed_depth, blocks);
    if (nodes < depth) return {{nodes}};
    for (auto full = std::min(nodes / depth, micro_batches); full >= 1; --full) {
      depth_list list(full, depth);
      lists.push_back(list);
      auto left = std::min(nodes - full * depth, depth);
      if (left == 0 || full == micro_batches) continue;
      list.push_back(left);
      lists.push_back(list);
    }
    return lists;
  }
  for (std::uint32_t replicas = 1; replicas <= std::min(nodes, micro_batches); ++replicas) {
    auto depth = nodes / replicas, deeper = nodes % replicas;
    depth_list list;
    for (std::uint32_t r = 0; r < replicas; ++r)
      list.push_back(std::min(blocks, depth + (r < deeper ? 1 : 0)));
    lists.push_back(std::move(list));
  }
  return lists;
}

/// Nodes in places: those of the first replica, then those of the second, ...
using grouping = std::vector<const worker*>;

/// Within a chain the first stages stash most.
void order_chain(std::vector<worker>& workers) {
  auto comes_first = [](auto& a, auto& b) {
    return std::tuple(a.memory_bytes, a.speed) > std::tuple(b.memory_bytes, b.speed);
  };
  if (!std::ranges::is_sorted(workers, comes_first)) std::ranges::stable_sort(workers, comes_first);
}

/// The nodes in places, chain by chain.
std::vector<std::vector<worker>> chains_of(const grouping& places, const depth_list& depths) {
  std::vector<std::vector<worker>> chains;
  chains.reserve(depths.size());
  auto next = places.begin();
  for (auto depth : depths) {
    auto& one = chains.emplace_back();
    one.reserve(depth);
    for (auto end = next + depth; next != end; ++next) one.push_back(**next);
    order_chain(one);
  }
  return chains;
}

double least_seconds(const price_list& prices, const grouping& places, const depth_list& depths) {
  std::vector<chain_size> sizes;
  sizes.reserve(depths.size());
  auto next = places.begin();
  for (auto depth : depths) {
    auto& one = sizes.emplace_back(chain_size{depth, 0, 0});
    for (auto end = next + depth; next != end; ++next) {
      one.speed += (*next)->speed;
      one.memory_bytes += static_cast<double>((*next)->memory_bytes);
    }
  }
  return planning::least_seconds(prices, sizes);
}

/// Where each replica's places begin, and one past the last.
std::vector<std::uint32_t> offsets_of(const depth_list& depths) {
  std::vector<std::uint32_t> offsets{0};
  for (auto d : depths) offsets.push_back(offsets.back() + d);
  return offsets;
}

/// Runs of neighbours in `order`: like goes with like, so that each chain is even in itself.
grouping neighbours(const grouping& order, const depth_list& depths, bool shallow_first) {
  auto offsets = offsets_of(depths);
  if (!shallow_first) return {order.begin(), order.begin() + offsets.back()};
  grouping places(offsets.back());
  auto next = order.begin();
  for (auto r = depths.size(); r-- > 0; next += depths[r])
    std::copy(next, next + depths[r], places.begin() + offsets[r]);
  return places;
}

/// Dealt out like cards, there and back: chains are alike among themselves.
grouping dealt(const grouping& order, const depth_list& depths) {
  auto offsets = offsets_of(depths);
  auto filled = offsets;
  grouping places(offsets.back());
  auto next = order.begin();
  for (bool forward = true, placed = true; placed; forward = !forward) {
    placed = false;
    for (std::size_t i = 0; i < depths.size(); ++i) {
      auto r = forward ? i : depths.size() - 1 - i;
      if (filled[r] == offsets[r + 1]) continue;
      places[filled[r]++] = *next++;
      placed = true;
    }
  }
  return places;
}

/// The orders in which nodes may be given places.
struct node_orders {
  grouping by_speed, by_memory;
  bool even_speed = true, even_memory = true;

  explicit node_orders(const std::vector<worker>& workers) {
    for (auto& w : workers) by_speed.push_back(&w);
    by_memory = by_speed;
    std::ranges::stable_sort(by_memory,
                             [](auto a, auto b) { return a->memory_bytes > b->memory_bytes; });
    even_speed = workers.front().speed == workers.back().speed;
    even_memory = by_memory.front()->memory_bytes == by_memory.back()->memory_bytes;
  }

  std::vector<grouping> groupings(const depth_list& depths) const {
    std::vector<grouping> all{neighbours(by_speed, depths, false)};
    if (!even_speed) all.push_back(neighbours(by_speed, depths, true));
    if (!even_speed) all.push_back(dealt(by_speed, depths));
    if (!even_memory) all.push_back(neighbours(by_memory, depths, true));
    if (!even_memory) all.push_back(neighbours(by_memory, depths, false));
    if (!even_memory) all.push_back(dealt(by_memory, depths));
    return all;
  }
};

/// Depths of the replicas that end soonest on nodes that are all alike, by the closed form. Empty
/// where nodes differ.
depth_list depths_of_equals(const price_list& prices, const std::vector<worker>& workers) {
  if (workers.front().speed != workers.back().speed) return {};
  auto& cost = prices.cost;
  bool always = prices.job.training.recompute == recompute_rule::always;
  std::vector<grid_block> blocks;
  auto whole_ns = [](double seconds) {
    return static_cast<std::uint64_t>(std::llround(seconds * 1e9));
  };
  for (block_index b = 0; b < cost.block_count(); ++b) {
    auto last = whole_ns(cost.seconds({b, b + 1}, false));
    blocks.push_back({std::max(last, whole_ns(cost.seconds({b, b + 1}, always))), last});
  }
  grid_partitioner parts(blocks);
  auto deepest = std::min<std::size_t>(workers.size(), cost.block_count());
  std::vector<pace> paces;
  for (stage_index p = 1; p <= deepest; ++p)
    paces.push_back({static_cast<double>(*parts.bottleneck(p)) * 1e-9 / workers.front().speed,
                     (p - 1.0) / chunks_of(prices, p), 2 * (p - 1.0) * cost.latency_seconds()});
  auto made =
    best_replicas(paces, static_cast<std::uint32_t>(workers.size()), prices.tree.micro_batches);
  return made ? made->depths : depth_list{};
}

}  // namespace

std::vector<worker> classify(const std::vector<plan_node>& nodes, const layout& present) {
  std::vector<worker> workers;
  for (auto& n : nodes) {
    bool measured = std::isfinite(n.speed) && n.speed > 0;
    workers.push_back(
      {n.node, measured ? n.speed : 1, n.memory_bytes == 0 ? UINT64_MAX : n.memory_bytes});
  }
  std::sort(workers.begin(), workers.end(), [](auto& a, auto& b) {
    return a.speed != b.speed ? a.speed > b.speed : a.node < b.node;
  });
  for (std::size_t i = 1; i < workers.size(); ++i)
    if (workers[i].speed >= class_width * workers[i - 1].speed)
      workers[i].speed = workers[i - 1].speed;
  auto present_nodes = nodes_of(present);
  std::sort(present_nodes.begin(), present_nodes.end());
  auto is_new = [&](node_id n) {
    return !std::binary_search(present_nodes.begin(), present_nodes.end(), n);
  };
  std::sort(workers.begin(), workers.end(), [&](auto& a, auto& b) {
    return std::tuple(-a.speed, is_new(a.node), a.node) <
           std::tuple(-b.speed, is_new(b.node), b.node);
  });
  return workers;
}

std::vector<candidate> search::run() {
  auto workers = workers_;
  auto usual = workers[workers.size() / 2].speed;
  // A depth that the job fixes is kept as long as there are nodes for it.
  auto fewest = std::max<std::size_t>(
    1, std::min<std::size_t>(prices_.job.parallelism.depth, prices_.cost.block_count()));
  try_all(workers);
  for (std::size_t dropped = 0; dropped < dropped_max && workers.size() > fewest; ++dropped) {
    // One node fewer is always worth a try: some numbers cut badly.
    if (dropped > 0 && workers.back().speed >= slow * usual) break;
    workers.pop_back();
    try_all(workers);
  }
  if (pool_.empty()) {
    auto by_memory = workers_;
    std::stable_sort(by_memory.begin(), by_memory.end(),
                     [](auto& a, auto& b) { return a.memory_bytes > b.memory_bytes; });
    // Once it fits, some fewer may still be faster: the smallest hold the others up.
    for (std::size_t more = 0; more <= dropped_max && !by_memory.empty(); by_memory.pop_back()) {
      try_all(by_memory);
      if (!pool_.empty()) ++more;
    }
  }

  auto keep = [&](auto good) { std::erase_if(pool_, [&](auto& c) { return !good(c); }); };
  keep([&](auto& c) { return c.cost_s() <= best_ * as_good; });
  bool redundant =
    std::any_of(pool_.begin(), pool_.end(), [](auto& c) { return c.is_redundant(); });
  keep([&](auto& c) { return c.is_redundant() == redundant; });
  std::size_t most = 0;
  for (auto& c : pool_) most = std::max(most, c.worker_count());
  keep([&](auto& c) { return c.worker_count() == most; });
  std::stable_sort(pool_.begin(), pool_.end(),
                   [](auto& a, auto& b) { return a.step_s < b.step_s; });
  keep([&, fastest = pool_.empty() ? 0 : pool_.front().step_s](auto& c) {
    return c.step_s <= fastest * as_fast;
  });
  return std::move(pool_);
}

namespace {

/// What counts among candidates that are as good: a second holder of each block, then busy nodes.
std::pair<bool, std::size_t> merit_of(std::size_t replicas, std::size_t workers) {
  return {replicas > 1, workers};
}

}  // namespace

void search::try_all(const std::vector<worker>& chosen) {
  struct attempt {
    double least_s;
    grouping places;
    const depth_list* depths;
  };
  std::vector<attempt> attempts;
  auto lists = depth_lists(static_cast<std::uint32_t>(chosen.size()), prices_.cost.block_count(),
                           prices_.tree.micro_batches, prices_.job.parallelism.depth);
  if (prices_.job.parallelism.depth == 0)
    if (auto depths = depths_of_equals(prices_, chosen); !depths.empty())
      lists.push_back(std::move(depths));
  node_orders orders(chosen);
  for (auto& depths : lists)
    for (auto& places : orders.groupings(depths)) {
      auto least_s = least_seconds(prices_, places, depths);
      if (std::isfinite(least_s)) attempts.push_back({least_s, std::move(places), &depths});
    }
  std::ranges::stable_sort(attempts, {}, &attempt::least_s);
  std::size_t in_vain = 0;
  for (auto& [least_s, places, depths] : attempts) {
    auto replicas = depths->size(), count = places.size();
    // Without more merit than the best so far, only the fast ones have a chance.
    if (least_s > best_ * (merit_of(replicas, count) > best_merit_ ? as_good : as_fast) ||
        in_vain > patience) {
      note(replicas, count, least_s);
      continue;
    }
    auto built = build(prices_, chains_of(places, *depths));
    if (std::isfinite(best_) && (!built || built->cost_s() >= best_)) ++in_vain;
    if (!built) continue;
    if (built->cost_s() < best_)
      in_vain = 0, best_ = built->cost_s(), best_merit_ = merit_of(built->chains.size(), count);
    note(built->chains.size(), count, built->step_s);
    if (built->cost_s() <= best_ * as_good) pool_.push_back(std::move(*built));
  }
}

void search::note(std::size_t replicas, std::size_t workers, double seconds) {
  if (workers == workers_.size()) best_with_all_ = std::min(best_with_all_, seconds);
  auto [known, fresh] = best_by_replicas_.emplace(replicas, seconds);
  if (!fresh) known->second = std::min(known->second, seconds);
}

}  // namespace shoal::core::planning
