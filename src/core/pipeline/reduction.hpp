#pragma once
// The end of a step: gradients summed over replicas, norms exchanged, optimizers run.
//
//   replica 0:  | stage 0    | stage 1       |      by bytes of the chain: each piece between two
//   replica 1:  | stage 0 |  stage 1  | st 2 |      cuts of any replica is one reduction, ready
//   pieces:     | a       |b | c      | d    |      when the last of its holders is
//
// A rank does its pieces one at a time, those at the end of the chain first: they are ready first.
// Where a replica holds a stage on several ranks (a plan of two directions), these copies sum among
// themselves first, and each then takes a share of the exchange with the other replicas.

#include <cstdint>
#include <span>
#include <vector>

#include "core/pipeline/simulation.hpp"

namespace shoal::core::events {

/// A rank that holds a stage of a replica.
struct holder {
  std::uint32_t replica = 0;
  rank_index rank = 0;
  virtual_stage stage = 0;
  std::int64_t ready_ns = 0;  ///< when the last gradient that it makes is there
  std::uint64_t bytes = 0;
  std::int64_t optimizer_ns = 0;
};

struct ending {
  std::int64_t summed_ns = 0;
  std::int64_t end_ns = 0;
};

/// `holders` by replica, then by stage. Adds to `records` where it is not null.
ending finish_step(std::span<const holder> holders, std::span<const replica_input> replicas,
                   const reduction_costs& costs, std::vector<record>* records);

}  // namespace shoal::core::events
