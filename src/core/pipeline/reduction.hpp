#pragma once
// The end of a step: gradients summed over replicas, norms exchanged, optimizers run.
//
//   replica 0:  | stage 0    | stage 1       |      by bytes of the chain: each piece between two
//   replica 1:  | stage 0 |  stage 1  | st 2 |      cuts of any replica is one reduction, ready
//   pieces:     | a       |b | c      | d    |      when the last of its holders is
//
// A stage does its pieces one at a time, those at the end of the chain first: they are ready first.

#include <cstdint>
#include <span>
#include <vector>

#include "core/pipeline/simulation.hpp"

namespace shoal::core::events {

/// A stage of a replica when its last gradient is there.
struct holder {
  std::uint32_t replica = 0;
  rank_index rank = 0;
  virtual_stage stage = 0;
  std::int64_t ready_ns = 0;
  std::uint64_t bytes = 0;
  std::int64_t optimizer_ns = 0;
};

struct ending {
  std::int64_t summed_ns = 0;
  std::int64_t end_ns = 0;
};

/// How long k holders take for n bytes.
std::int64_t exchange_ns(const reduction_costs& costs, std::size_t k, std::uint64_t bytes);

/// `holders` by replica, then by stage. Adds to `records` where it is not null.
ending finish_step(std::span<const holder> holders, std::size_t replica_count,
                   const reduction_costs& costs, std::vector<record>* records);

}  // namespace shoal::core::events
