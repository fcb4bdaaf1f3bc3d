#pragma once
// A small world for tests of the planner: a profile, a job, nodes, and the layout in force.

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "core/plan/plan.hpp"

namespace shoal::core {

constexpr std::uint64_t mebibyte = 1 << 20;
constexpr std::uint64_t reserve = 350 * mebibyte;

/// A workplace: equal blocks of 30 ms and 4 MiB of parameters, a fast network, 16 micro-batches.
struct workplace {
  plan_profile profile;
  job_options job;
  std::vector<plan_node> nodes;
  layout present;

  explicit workplace(std::uint32_t blocks = 8) {
    for (std::uint32_t b = 0; b < blocks; ++b)
      profile.blocks.push_back({.name = "block " + std::to_string(b),
                                .forward = 10ms,
                                .backward = 20ms,
                                .parameter_bytes = 4 * mebibyte,
                                .state_bytes = 8 * mebibyte,
                                .stash_bytes = mebibyte,
                                .boundary_bytes = 1 << 16});
    profile.link_bytes_per_s = 10e9;
    job.training.micro_batches = 16;
  }

  workplace& with(std::uint32_t count, double speed = 1, std::uint64_t memory = 0) {
    for (std::uint32_t i = 0; i < count; ++i)
      nodes.push_back({node_id{nodes.size() + 1}, speed, memory});
    return *this;
  }
  workplace& without(std::uint64_t node) {
    std::erase_if(nodes, [&](auto& n) { return n.node == node_id{node}; });
    return *this;
  }

  /// A plan that passes every rule.
  plan_result made() const {
    auto result = plan(profile, nodes, present, job);
    if (!result) FAIL(result.error().text);
    CHECK(check(result->shape, std::uint32_t(profile.blocks.size()), job.training.micro_batches,
                errc::internal));
    auto used = nodes_of(result->shape);
    std::set<node_id> all(used.begin(), used.end());
    for (auto node : result->spares) REQUIRE(all.insert(node).second);
    CHECK(all.size() == nodes.size());
    for (auto& n : nodes) CHECK(all.count(n.node) == 1);
    if (!result->spares.empty()) CHECK_THAT(result->reason, Catch::Contains(" spare: "));
    CHECK(result->step_expected > 0ns);
    return *result;
  }
  error failed() const {
    auto result = plan(profile, nodes, present, job);
    REQUIRE_FALSE(result);
    return result.error();
  }
};

inline std::vector<std::size_t> depths(const layout& shape) {
  std::vector<std::size_t> all;
  for (auto& replica : shape.replicas) all.push_back(replica.stages.size());
  return all;
}

inline std::vector<std::uint32_t> shares(const layout& shape) {
  std::vector<std::uint32_t> all;
  for (auto& replica : shape.replicas) all.push_back(replica.micro_batches.size());
  return all;
}

inline std::vector<stage> first_chain(const plan_result& made) {
  return made.shape.replicas[0].stages;
}

using sizes = std::vector<std::size_t>;
using counts = std::vector<std::uint32_t>;

}  // namespace shoal::core
