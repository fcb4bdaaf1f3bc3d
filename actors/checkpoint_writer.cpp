#include "actors/checkpoint_writer.hpp"

namespace shoal::actors {

checkpoint_writer_state::checkpoint_writer_state(checkpoint_writer_actor::pointer self,
                                                 node_engine engine, node_inside node)
  : self_(self),
    engine_(std::move(engine)),
    collector_(engine_.block_count),
    node_(std::move(node)),
    door_(checkpoint_writer_actor{self}) {}

checkpoint_writer_actor::behavior_type checkpoint_writer_state::make_behavior() {
  return {
    [this](const local<core::runner_snapshot>& snapshot) { write(*snapshot.value); },
    [this](const core::parts_written& parts) { collect(parts); },
    [this](const local<core::parts_written>& parts) { tell({*parts.value}); },
    [this](const local<core::checkpoint_done>& done) { tell({*done.value}); },
  };
}

void checkpoint_writer_state::write(const core::runner_snapshot& snapshot) {
  engine_.write(snapshot, [door = door_.shared](core::parts_written parts) {
    door->post(make_local(std::move(parts)));
  });
}

/// One answer a generation: the collector drops what comes after the first failure only to begin
/// anew, so a failure that comes twice is told twice, which the supervisor does not mind.
void checkpoint_writer_state::collect(const core::parts_written& parts) {
  auto whole = collector_.add(parts);
  if (!parts.failure.empty()) return tell({core::checkpoint_done{{}, parts.step, parts.failure}});
  if (!whole) return;
  engine_.complete(
    parts.step, *std::move(whole), [door = door_.shared, step = parts.step](result<void> done) {
      door->post(make_local(core::checkpoint_done{{}, step, done ? "" : done.error().text}));
    });
}

void checkpoint_writer_state::tell(core::from_writer what) {
  self_->send(node_, make_local<core::member_event>(std::move(what)));
}

}  // namespace shoal::actors
