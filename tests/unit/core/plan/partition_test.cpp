// Every form of the partitioner against exhaustive search on random small chains.

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <iostream>
#include <limits>
#include <tuple>

#include "base/rng.hpp"
#include "core/plan/partition_grid.hpp"
#include "core/plan/partition_order.hpp"
#include "core/plan/partition_replicated.hpp"
#include "unit/core/every_cut.hpp"

using namespace shoal;
using namespace shoal::core;
using namespace shoal::core::planning;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr int chains = 1000;

rng seeded(std::uint64_t seed) {
  std::cout << "partition_test: seed " << seed << "\n";
  return rng(seed);
}

std::vector<chain_block> random_blocks(rng& random, std::uint32_t count) {
  std::vector<chain_block> blocks(count);
  for (auto& b : blocks)
    b = {.forward = double(random.below(20)),
         .backward = double(random.below(40)),
         .parameter_bytes = double(random.below(30)),
         .held_bytes = double(random.below(30)),
         .stash_bytes = double(random.below(20)),
         .boundary_bytes = double(random.below(10))};
  return blocks;
}

/// The definition, written once more and slowly.
double slow_time(const std::vector<chain_block>& blocks, const replicated_options& options,
                 const replicated_stage& stage, std::uint32_t devices, std::uint32_t stages) {
  double compute = 0, parameters = 0, held = 0, stash = 0, q = stage.replicas;
  for (auto b = stage.blocks.begin; b < stage.blocks.end; ++b) {
    compute += blocks[b].backward + (stage.recompute ? 2 : 1) * blocks[b].forward;
    parameters += blocks[b].parameter_bytes;
    held += blocks[b].held_bytes;
    stash += blocks[b].stash_bytes;
  }
  auto& kind = options.devices[stage.device_class];
  auto boundary = blocks[stage.blocks.begin].boundary_bytes;
  auto versions = std::ceil(devices / q);
  auto live = options.stash == stash_rule::by_devices
                ? versions
                : double(std::min(options.micro_batches, stages));
  auto bytes = stage.recompute ? live * boundary + stash : live * stash;
  bytes += options.stash == stash_rule::by_devices ? versions * held : held;
  if (bytes > kind.memory_bytes) return infinite;
  compute /= kind.speed;
  if (options.bytes_per_time == 0) return compute / q;
  auto sync = 4 * (q - 1) * parameters / (q * options.bytes_per_time);
  auto time = options.sync == sync_rule::added ? (compute + sync) / q : std::max(compute, sync) / q;
  if (options.transfers && stage.blocks.begin > 0)
    time = std::max(time, 2 * boundary / (q * options.bytes_per_time));
  return time;
}

double slow_best(const std::vector<chain_block>& blocks, const replicated_options& options) {
  double best = infinite;
  auto count = std::uint32_t(blocks.size());
  for_each_cut(count, [&](auto& cut) {
    // Stages from the last one backwards, so that what comes after is known.
    std::vector<std::uint32_t> left;
    for (auto& c : options.devices) left.push_back(c.count);
    std::function<void(std::size_t, std::uint32_t, double)> place = [&](auto s, auto used,
                                                                        double slowest) {
      if (s == 0) {
        best = std::min(best, slowest);
        return;
      }
      for (std::uint32_t c = 0; c < left.size(); ++c)
        for (std::uint32_t q = 1; q <= std::min(left[c], options.replicas_max); ++q)
          for (bool again : {false, true}) {
            if (again && (!options.may_recompute || s == cut.size())) continue;
            left[c] -= q;
            auto time = slow_time(blocks, options, {cut[s - 1], q, again, c}, used + q,
                                  std::uint32_t(cut.size() - (s - 1)));
            place(s - 1, used + q, std::max(slowest, time));
            left[c] += q;
          }
    };
    place(cut.size(), 0, 0);
  });
  return best;
}

void check_replicated(const std::vector<chain_block>& blocks, const replicated_options& options) {
  auto least = slow_best(blocks, options);
  auto made = cut_replicated(blocks, options);
  REQUIRE(bool(made) == (least < infinite));
  if (!made) return;
  REQUIRE(made->bottleneck == Approx(least).epsilon(1e-12));
  // And the stages it names are what it says.
  double slowest = 0;
  std::uint32_t reached = 0, devices = made->devices();
  auto stages = std::uint32_t(made->stages.size());
  std::vector<std::uint32_t> used(options.devices.size());
  for (auto& s : made->stages) {
    REQUIRE(s.blocks.begin == reached);
    REQUIRE(s.blocks.size() > 0);
    slowest = std::max(slowest, slow_time(blocks, options, s, devices, stages--));
    devices -= s.replicas;
    used[s.device_class] += s.replicas;
    reached = s.blocks.end;
  }
  REQUIRE(reached == blocks.size());
  for (std::size_t c = 0; c < used.size(); ++c) REQUIRE(used[c] <= options.devices[c].count);
  REQUIRE(slowest == Approx(made->bottleneck).epsilon(1e-12));
}

}  // namespace

TEST_CASE("a grid's cut has the least bottleneck, then squares, boundary bytes, moved bytes",
          "[core][plan][partition]") {
  auto random = seeded(11);
  for (int i = 0; i < chains; ++i) {
    auto count = std::uint32_t(1 + random.below(9));
    std::vector<grid_block> blocks(count);
    for (auto& b : blocks) {
      b.last_time_ns = random.below(3) == 0 ? 0 : random.below(8);
      b.time_ns = b.last_time_ns + random.below(4);
      b.boundary_bytes = random.below(4);
      b.held_bytes = random.below(4);
    }
    auto stages = stage_index(1 + random.below(count));
    std::vector<index_range> present;
    if (random.below(2) == 0)
      for (stage_index s = 0; s < stages; ++s) {
        auto begin = std::uint32_t(random.below(count));
        present.push_back({begin, begin + 1 + std::uint32_t(random.below(count - begin))});
      }
    grid_partitioner parts(blocks);
    using rank = std::array<std::uint64_t, 4>;
    auto rank_of = [&](const std::vector<index_range>& cut) {
      rank r{};
      for (stage_index s = 0; s < cut.size(); ++s) {
        auto time = parts.time_ns(cut[s], s + 1 == cut.size());
        r[0] = std::max(r[0], time);
        r[1] += time * time;
        if (s > 0) r[2] += blocks[cut[s].begin].boundary_bytes;
        for (auto b = cut[s].begin; b < cut[s].end; ++b)
          if (!present.empty() && !present[s].contains(b)) r[3] += blocks[b].held_bytes;
      }
      return r;
    };
    rank best{UINT64_MAX};
    for_each_cut(count, stages, [&](auto& cut) { best = std::min(best, rank_of(cut)); });
    auto made = parts.cut(stages, present);
    REQUIRE(made);
    CAPTURE(i);
    REQUIRE(rank_of(*made) == best);
    REQUIRE(parts.bottleneck(stages) == best[0]);
    REQUIRE_FALSE(parts.cut(count + 1));
    REQUIRE_FALSE(parts.bottleneck(0));
  }
}

TEST_CASE("replication by stage has the least bottleneck", "[core][plan][partition]") {
  auto random = seeded(12);
  for (int i = 0; i < chains; ++i) {
    replicated_options options;
    options.devices = {{std::uint32_t(1 + random.below(5))}};
    options.bytes_per_time = random.below(4) == 0 ? 0 : 0.5 + random.uniform() * 4;
    options.transfers = random.below(3) != 0;
    options.sync = random.below(2) == 0 ? sync_rule::added : sync_rule::overlapped;
    if (random.below(3) == 0) options.replicas_max = 1 + std::uint32_t(random.below(2));
    check_replicated(random_blocks(random, std::uint32_t(1 + random.below(6))), options);
  }
}

TEST_CASE("memory by position in the schedule is kept, with and without recompute",
          "[core][plan][partition]") {
  auto random = seeded(13);
  int fitting = 0;
  for (int i = 0; i < 2 * chains; ++i) {
    replicated_options options;
    options.devices = {{std::uint32_t(1 + random.below(5)), 1, 20 + random.uniform() * 200}};
    options.bytes_per_time = random.below(2) == 0 ? 0 : 2;
    options.stash = i % 2 == 0 ? stash_rule::by_stages : stash_rule::by_devices;
    options.micro_batches = 1 + std::uint32_t(random.below(5));
    options.may_recompute = i % 4 < 2;
    auto blocks = random_blocks(random, std::uint32_t(1 + random.below(5)));
    check_replicated(blocks, options);
    fitting += cut_replicated(blocks, options) ? 1 : 0;
  }
  CHECK(fitting > chains / 2);
  CHECK(fitting < 2 * chains - chains / 10);
}

TEST_CASE("up to three classes of devices in any order have the least bottleneck",
          "[core][plan][partition]") {
  auto random = seeded(14);
  for (int i = 0; i < chains; ++i) {
    replicated_options options;
    options.devices.clear();
    for (auto c = 1 + random.below(3); c > 0; --c)
      options.devices.push_back({std::uint32_t(1 + random.below(2)), 0.25 + random.uniform(),
                                 random.below(3) == 0 ? 60 + 100 * random.uniform() : infinite});
    options.bytes_per_time = random.below(2) == 0 ? 0 : 2;
    options.stash = stash_rule::by_stages;
    options.micro_batches = 4;
    check_replicated(random_blocks(random, std::uint32_t(1 + random.below(5))), options);
  }
}

TEST_CASE("unequal devices in a fixed order have the least bottleneck", "[core][plan][partition]") {
  auto random = seeded(15);
  for (int i = 0; i < chains; ++i) {
    auto blocks = random_blocks(random, std::uint32_t(1 + random.below(6)));
    std::vector<ordered_device> devices(1 + random.below(4));
    for (auto& d : devices)
      d = {0.2 + random.uniform(), random.below(3) == 0 ? 40 + 150 * random.uniform() : infinite};
    ordered_options options{random.below(2) == 0 ? 0.0 : 1.5, std::uint32_t(1 + random.below(4)),
                            random.below(2) == 0};
    double best = infinite;
    for_each_cut(std::uint32_t(blocks.size()), [&](auto& cut) {
      std::function<void(std::size_t, std::size_t, double)> place = [&](auto s, auto d,
                                                                        double slowest) {
        if (s == cut.size()) {
          best = std::min(best, slowest);
          return;
        }
        for (; d < devices.size(); ++d)
          for (bool again : {false, true}) {
            if (again && (!options.may_recompute || s + 1 == cut.size())) continue;
            replicated_options one;
            one.devices = {{1, devices[d].speed, devices[d].memory_bytes}};
            one.bytes_per_time = options.bytes_per_time;
            one.stash = stash_rule::by_stages;
            one.micro_batches = options.micro_batches;
            auto time =
              slow_time(blocks, one, {cut[s], 1, again}, 1, std::uint32_t(cut.size() - s));
            place(s + 1, d + 1, std::max(slowest, time));
          }
      };
      place(0, 0, 0);
    });
    auto made = cut_in_order(blocks, devices, options);
    REQUIRE(bool(made) == (best < infinite));
    if (!made) continue;
    REQUIRE(made->bottleneck == Approx(best).epsilon(1e-12));
    std::uint32_t reached = 0, next = 0;
    for (auto& s : made->stages) {
      REQUIRE(s.device >= next);
      REQUIRE(s.blocks.begin == reached);
      REQUIRE(s.blocks.size() > 0);
      next = s.device + 1, reached = s.blocks.end;
    }
    REQUIRE(reached == blocks.size());
  }
}

TEST_CASE("replicas of unequal depth end as early as any choice of depths allows",
          "[core][plan][partition]") {
  auto random = seeded(16);
  for (int i = 0; i < chains; ++i) {
    std::vector<pace> paces(1 + random.below(4));
    for (std::size_t p = 0; p < paces.size(); ++p)
      paces[p] = {(1 + random.uniform()) / double(p + 1), double(p), random.uniform() / 4};
    auto nodes = std::uint32_t(1 + random.below(7));
    auto micro_batches = std::uint32_t(1 + random.below(9));
    double best = infinite;
    std::function<void(std::uint32_t, std::uint32_t, std::uint32_t, double)> add =
      [&](auto left, auto depth_max, auto open, double finish) {
        if (open == 0) best = std::min(best, finish);
        for (std::uint32_t p = 1; p <= std::min(left, depth_max); ++p)
          for (std::uint32_t m = 1; m <= open; ++m)
            add(left - p, p, open - m, std::max(finish, paces[p - 1].finish(m)));
      };
    add(nodes, std::uint32_t(paces.size()), micro_batches, 0);
    auto made = best_replicas(paces, nodes, micro_batches);
    REQUIRE(made);
    REQUIRE(made->finish == Approx(best).epsilon(1e-9));
    std::uint32_t used = 0, shared = 0;
    for (auto p : made->depths) used += p;
    for (auto m : made->shares) shared += m;
    REQUIRE(used <= nodes);
    REQUIRE(shared == micro_batches);
  }
  CHECK_FALSE(best_replicas({}, 3, 3));
  CHECK_FALSE(best_replicas({pace{1, 0, 0}}, 0, 3));
}

TEST_CASE("the least spread is not the least bottleneck: DeepSpeed's objective",
          "[core][plan][partition]") {
  // Cut by max - min the slowest part takes 22; the optimum is 19.
  std::vector<std::uint64_t> weights{3, 19, 17, 3, 3, 7, 6};
  std::vector<grid_block> blocks;
  for (auto w : weights) blocks.push_back({w, w});
  CHECK(grid_partitioner(blocks).bottleneck(4) == 19u);
  std::uint64_t spread = UINT64_MAX, slowest = 0;
  for_each_cut(7, 4, [&](auto& cut) {
    std::uint64_t most = 0, least = UINT64_MAX;
    for (auto& range : cut) {
      std::uint64_t sum = 0;
      for (auto b = range.begin; b < range.end; ++b) sum += weights[b];
      most = std::max(most, sum), least = std::min(least, sum);
    }
    // The spread does not tell this cut from the best one: both have 16.
    if (most - least < spread || (most - least == spread && most > slowest))
      spread = most - least, slowest = most;
  });
  CHECK(slowest == 22);
}
