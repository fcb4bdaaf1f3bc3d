#pragma once

#include "actors/interfaces.hpp"
#include "actors/system.hpp"

namespace shoal::actors {

/// Hands snapshots to the writing thread, and, on the lead's node, completes a checkpoint with its
/// manifest once all its blocks are written.
class checkpoint_writer_state {
public:
  static inline const char* name = "checkpoint writer";

  checkpoint_writer_state(checkpoint_writer_actor::pointer self, node_engine engine,
                          node_inside node);
  checkpoint_writer_actor::behavior_type make_behavior();

private:
  void write(const core::runner_snapshot& snapshot);
  void collect(const core::parts_written& parts);
  void tell(core::from_writer what);

  checkpoint_writer_actor::pointer self_;
  node_engine engine_;
  core::part_collector collector_;
  node_inside node_;
  own_door<checkpoint_writer_actor> door_;  // for the writing thread
};

}  // namespace shoal::actors
