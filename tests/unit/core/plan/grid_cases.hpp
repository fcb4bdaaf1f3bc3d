#pragma once
// Requests that the search of grids is tried with, and the best answer to small ones, found by
// trying everything.

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

#include "base/rng.hpp"
#include "core/plan/grid_cut.hpp"

namespace shoal::core {

inline constexpr std::uint64_t mebibyte = 1 << 20;

inline sized_profile equal_blocks(std::uint32_t count, std::uint32_t size = 1) {
  sized_profile p{size, {}};
  for (std::uint32_t b = 0; b < count; ++b)
    p.profile.blocks.push_back({.name = "block " + std::to_string(b),
                                .forward = 10ms * size,
                                .backward = 20ms * size,
                                .parameter_bytes = 16 * mebibyte,
                                .state_bytes = 32 * mebibyte,
                                .stash_bytes = 8 * mebibyte * size,
                                .boundary_bytes = mebibyte * size});
  p.profile.link_bytes_per_s = 10e9;
  return p;
}

inline grid_request request_for(std::uint32_t blocks, std::uint32_t nodes, std::uint32_t samples) {
  grid_request r;
  r.profiles = {equal_blocks(blocks)};
  r.nodes = nodes;
  r.samples = samples;
  return r;
}

/// Up to seven blocks of unlike times, eight nodes, links and memory of all kinds.
inline grid_request random_request(rng& random) {
  auto blocks = std::uint32_t(2 + random.below(6));
  auto r = request_for(blocks, std::uint32_t(1 + random.below(8)),
                       std::uint32_t(4 * (1 + random.below(6))));
  r.profiles = {equal_blocks(blocks, 1), equal_blocks(blocks, 2)};
  for (std::uint32_t b = 0; b < blocks; ++b) {
    auto forward = nanoseconds(1'000'000 + random.below(20'000'000));
    auto bytes = random.below(4 * mebibyte);
    for (auto& p : r.profiles) {
      auto size = p.micro_batch_size;
      p.profile.blocks[b].forward = forward * size * (size == 2 ? 9 : 10) / 10;
      p.profile.blocks[b].backward = 2 * p.profile.blocks[b].forward;
      p.profile.blocks[b].boundary_bytes = bytes * size;
    }
  }
  auto latency = nanoseconds(random.below(3) == 0 ? random.below(30'000'000) : 100'000);
  auto rate = random.below(2) == 0 ? 1e9 : 1e8;
  for (auto& p : r.profiles) p.profile.link_latency = latency, p.profile.link_bytes_per_s = rate;
  if (random.below(2) == 0) r.memory_bytes = (450 + random.below(800)) * mebibyte;
  return r;
}

/// Seconds a step of the best grid of all, by `r.simulate`; infinite when none fits.
inline double exhaustive_best(const grid_request& r) {
  auto blocks = static_cast<std::uint32_t>(r.profiles[0].profile.blocks.size());
  double best = std::numeric_limits<double>::infinity();
  for (auto& profile : r.profiles) {
    if (r.samples % profile.micro_batch_size != 0) continue;
    planning::sized_model model(r, profile);
    for (std::uint32_t depth = 1; depth <= std::min(blocks, r.nodes); ++depth)
      for (std::uint32_t replicas = 1; replicas <= std::min(r.nodes / depth, model.micro_batches());
           ++replicas)
        for (bool again : {false, true})
          for (auto schedule : r.schedules) {
            grid_plan plan{.micro_batch_size = profile.micro_batch_size,
                           .depth = depth,
                           .replicas = replicas,
                           .schedule = schedule};
            plan.micro_batches = (model.micro_batches() + replicas - 1) / replicas;
            std::function<void(std::uint32_t)> cut = [&](std::uint32_t begin) {
              if (plan.cuts.size() + 1 == depth) {
                plan.cuts.push_back({begin, blocks});
                plan.recompute.assign(depth, again);
                plan.recompute.back() = false;
                auto shape = model.shape_of(plan);
                plan.in_flight.clear();
                for (std::uint32_t s = 0; s < depth; ++s)
                  plan.in_flight.push_back(
                    planning::stash_count(shape, schedule, plan.micro_batches, s));
                if (model.reprice(plan))
                  best = std::min(best, r.simulate(profile, plan) + plan.exchange_s);
                plan.cuts.pop_back();
                return;
              }
              for (auto end = begin + 1; end + (depth - plan.cuts.size() - 1) <= blocks; ++end) {
                plan.cuts.push_back({begin, end});
                cut(end);
                plan.cuts.pop_back();
              }
            };
            cut(0);
          }
  }
  return best;
}

/// A model of 96 blocks at eight micro-batch sizes on ten thousand nodes.
inline grid_request large_request() {
  grid_request r;
  for (std::uint32_t size : {1u, 2u, 3u, 4u, 6u, 8u, 12u, 16u}) {
    r.profiles.push_back(equal_blocks(96, size));
    for (std::uint32_t b = 0; b < 96; ++b) {
      r.profiles.back().profile.blocks[b].forward += (b % 7) * 100us * size;
      r.profiles.back().profile.blocks[b].parameter_bytes = 1800 * mebibyte / 8;
    }
  }
  r.nodes = 10'000, r.samples = 48 * 1024;
  r.memory_bytes = 16ull << 30;
  r.schedules.push_back(stage_order::interleaved);
  r.chunks_max = 4;
  return r;
}

}  // namespace shoal::core
