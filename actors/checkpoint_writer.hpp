#pragma once

#include "actors/interfaces.hpp"
#include "actors/system.hpp"

namespace shoal::actors {

/// Hands snapshots to the writing thread, and, on the lead's node, completes a checkpoint with its
/// manifest once all its blocks are written.
class checkpoint_writer_state {
public:
  static inline const char* name = "checkpoint writer";

  checkpoint_writer_state(checkpoint_writer_actor::pointer self, const node_engine* engine,
                          std::uint32_t block_count, node_actor node)
    : self_(self), engine_(*engine), collector_(block_count), node_(std::move(node)) {}
  checkpoint_writer_actor::behavior_type make_behavior();

private:
  void write(const core::runner_snapshot& snapshot);
  void collect(const core::parts_written& parts);

  checkpoint_writer_actor::pointer self_;
  const node_engine& engine_;
  core::part_collector collector_;
  node_actor node_;
};

}  // namespace shoal::actors
