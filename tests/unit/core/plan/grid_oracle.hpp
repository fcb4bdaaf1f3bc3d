#pragma once
// A slow, plain simulator of strict lists, to judge the search by: stages of a chain, each doing
// its forwards and backwards in one fixed order, a link each way that sends one message at a time.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "core/plan/grid_search.hpp"

namespace shoal::core {

/// Seconds that one replica takes for its micro-batches; not for chunks.
inline double simulated_span(const sized_profile& profile, const grid_plan& plan) {
  auto p = plan.cuts.size();
  auto m = plan.micro_batches;
  auto seconds = [](nanoseconds t) { return std::chrono::duration<double>(t).count(); };
  std::vector<double> forward(p), backward(p), transfer(p);
  for (std::size_t s = 0; s < p; ++s) {
    auto& blocks = profile.profile.blocks;
    for (auto b = plan.cuts[s].begin; b < plan.cuts[s].end; ++b) {
      forward[s] += seconds(blocks[b].forward);
      backward[s] += seconds(blocks[b].backward);
      if (plan.recompute[s]) backward[s] += seconds(blocks[b].forward);
    }
    if (s > 0 && profile.profile.link_bytes_per_s > 0)
      transfer[s] =
        double(blocks[plan.cuts[s].begin].boundary_bytes) / profile.profile.link_bytes_per_s;
  }
  auto latency = seconds(profile.profile.link_latency);
  // done[s][k], arrives: of forwards and backwards. Stages run until nothing moves any more.
  std::vector<std::vector<double>> input(p, std::vector<double>(m, -1)), gradient = input;
  std::vector<double> down_free(p, 0), up_free(p, 0), clock(p, 0);
  std::vector<std::uint32_t> f(p, 0), b(p, 0);
  for (auto& at : input[0]) at = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < p; ++s)
      for (;;) {
        bool is_forward = f[s] < m && f[s] - b[s] < std::min(m, plan.in_flight[s]);
        auto k = is_forward ? f[s] : b[s];
        if (k >= m) break;
        auto ready = is_forward ? input[s][k] : s + 1 == p ? 0 : gradient[s][k];
        if (ready < 0) break;
        clock[s] = std::max(clock[s], ready) + (is_forward ? forward[s] : backward[s]);
        if (is_forward && s + 1 < p) {
          down_free[s] = std::max(down_free[s], clock[s]) + transfer[s + 1];
          input[s + 1][k] = down_free[s] + latency;
        } else if (!is_forward && s > 0) {
          up_free[s] = std::max(up_free[s], clock[s]) + transfer[s];
          gradient[s - 1][k] = up_free[s] + latency;
        }
        ++(is_forward ? f[s] : b[s]);
        moved = true;
      }
  }
  return *std::max_element(clock.begin(), clock.end());
}

}  // namespace shoal::core
