#include "actors/checkpoint_writer.hpp"

namespace shoal::actors {

checkpoint_writer_actor::behavior_type checkpoint_writer_state::make_behavior() {
  return {
    [this](const local<core::runner_snapshot>& snapshot) { write(*snapshot.value); },
    [this](const core::parts_written& parts) { collect(parts); },
    [this](const local<core::parts_written>& parts) {
      self_->send(node_, make_local<core::member_event>(core::from_writer{*parts.value}));
    },
    [this](const local<core::checkpoint_done>& done) {
      self_->send(node_, make_local<core::member_event>(core::from_writer{*done.value}));
    },
  };
}

void checkpoint_writer_state::write(const core::runner_snapshot& snapshot) {
  // A plain handle: the writing thread may outlive this state, not the actor's address.
  checkpoint_writer_actor me = self_;
  engine_.write(snapshot, [me](core::parts_written parts) {
    caf::anon_send(me, make_local(std::move(parts)));
  });
}

void checkpoint_writer_state::collect(const core::parts_written& parts) {
  checkpoint_writer_actor me = self_;
  auto report = [me, step = parts.step](const std::string& failure) {
    caf::anon_send(me, make_local(core::checkpoint_done{{}, step, failure}));
  };
  if (!parts.failure.empty()) return report(parts.failure);
  if (auto whole = collector_.add(parts))
    engine_.complete(parts.step, *std::move(whole), [report](result<void> written) {
      report(written ? "" : written.error().text);
    });
}

}  // namespace shoal::actors
