#pragma once
// Every actor interface, in one place: to see who says what to whom, read this. The messages
// themselves are in core/messages.hpp.

#include "actors/caf/adapt.hpp"
#include "core/messages.hpp"
#include "core/morph/member_machine.hpp"
#include "core/step/coordinator_machine.hpp"

namespace shoal::actors {

// -- messages that only actors know -----------------------------------------------------------------

}  // namespace shoal::actors

namespace shoal::core {

/// COORDINATOR to a STAGE or COORDINATOR of another NODE: the lead's verdict, with who passes it on.
struct mailed_verdict {
  node_id from;
  verdict word;
  static constexpr auto type_name = "shoal::mailed_verdict";
  static auto fields(auto& x) { return std::tie(x.from, x.word); }
};

/// Somebody's question to the SUPERVISOR, for `shoal status`, `shoal leave`, `shoal node`.
struct question {
  std::string what;  ///< "status", "leave", "stop"
  node_id node;      ///< leave: whom
  static constexpr auto type_name = "shoal::question";
  static auto fields(auto& x) { return std::tie(x.what, x.node); }
};

/// The answer: JSON, or with `refused` a sentence.
struct answer {
  bool refused = false;
  std::string text;
  static constexpr auto type_name = "shoal::answer";
  static auto fields(auto& x) { return std::tie(x.refused, x.text); }
};

/// An actor to itself: time has passed.
struct tick {
  std::uint8_t unused = 0;
  static constexpr auto type_name = "shoal::tick";
  static auto fields(auto& x) { return std::tie(x.unused); }
};

/// NODE to itself: knock at the supervisor.
struct knock {
  std::uint8_t unused = 0;
  static constexpr auto type_name = "shoal::knock";
  static auto fields(auto& x) { return std::tie(x.unused); }
};

}  // namespace shoal::core

namespace shoal::actors {

// -- interfaces -----------------------------------------------------------------------------------

/// The SUPERVISOR decides which nodes train which layout.
using supervisor_actor = actor_of<
  // Lets a node in, or back in.
  void(core::hello),
  // Takes note of where a node stands once its view has stopped.
  void(core::standing),
  // The node has all its blocks and peers.
  void(core::ready),
  // The node could not get ready.
  void(core::failed),
  // The node lives, and how far it is.
  void(core::heartbeat),
  // The node cannot go on training.
  void(core::trouble),
  // The node wants to go.
  void(core::leaving),
  // A round is decided.
  void(core::decided),
  // Two replicas differ.
  void(core::diverged),
  // A checkpoint exists, or was dropped.
  void(core::checkpoint_done),
  // Answers `shoal status` and obeys `shoal leave`.
  core::answer(core::question),
  // INTERNAL: an event from the program around it: an exited process, a stop.
  void(local<core::supervisor_event>),
  // INTERNAL: looks at deadlines and silence.
  void(core::tick)>;

/// A NODE is one process that trains.
using node_actor = actor_of<
  // SUPERVISOR: you are in.
  void(core::welcome),
  // SUPERVISOR: you are not in.
  void(core::refused),
  // SUPERVISOR: stop training, tell your standing.
  void(core::halt),
  // SUPERVISOR: get ready for a view.
  void(core::prepare),
  // SUPERVISOR: train.
  void(core::commit),
  // SUPERVISOR to the lead's node: end the view with the next verdict.
  void(core::drain),
  // SUPERVISOR: the process may end.
  void(core::stop),
  // SUPERVISOR: I have heard your heartbeat.
  void(core::lease),
  // A STAGE elsewhere, for the COORDINATOR here.
  void(core::stage_report),
  // A COORDINATOR elsewhere, for the lead here.
  void(core::replica_report),
  // A COORDINATOR elsewhere, for the COORDINATOR or the STAGE here.
  void(core::mailed_verdict),
  // A CHECKPOINT WRITER elsewhere, for the lead's here.
  void(core::parts_written),
  // INTERNAL: from STAGE, COORDINATOR, CHECKPOINT WRITER or the program: an event for the machine.
  void(local<core::member_event>),
  // INTERNAL: from COORDINATOR: what its machine wants done.
  void(local<std::vector<core::coordinator_action>>),
  // INTERNAL: heartbeat.
  void(core::tick),
  // INTERNAL: looks for the supervisor.
  void(core::knock)>;

/// The STAGE stands between the NODE and the thread that trains.
using stage_actor = actor_of<
  // NODE: get ready.
  void(local<core::runner_get_ready>),
  // NODE: train.
  void(core::commit),
  // NODE: the word on the round.
  void(core::verdict),
  // NODE: stop at once.
  void(core::halt),
  // INTERNAL: the training thread has something to say.
  void(local<core::runner_event>)>;

/// The COORDINATOR of one replica in one view; that of replica 0 leads.
using coordinator_actor = actor_of<
  // A stage of the replica has its sums.
  void(core::stage_report),
  // Lead: a replica has its sums.
  void(core::replica_report),
  // The lead's word, for the stages of the replica.
  void(core::verdict),
  // Lead: end the view with the next verdict.
  void(core::drain)>;

/// The CHECKPOINT WRITER of a node; that of the lead's node also completes checkpoints.
using checkpoint_writer_actor = actor_of<
  // NODE: write these blocks.
  void(local<core::runner_snapshot>),
  // NODE: blocks that some node has written, when this node leads.
  void(core::parts_written),
  // INTERNAL: the writing thread is done with a generation.
  void(local<core::parts_written>),
  // INTERNAL: the writing thread has written, or could not write, a manifest.
  void(local<core::checkpoint_done>)>;

}  // namespace shoal::actors

CAF_BEGIN_TYPE_ID_BLOCK(shoal, caf::first_custom_type_id)
CAF_ADD_TYPE_ID(shoal, (shoal::core::hello))
CAF_ADD_TYPE_ID(shoal, (shoal::core::standing))
CAF_ADD_TYPE_ID(shoal, (shoal::core::ready))
CAF_ADD_TYPE_ID(shoal, (shoal::core::failed))
CAF_ADD_TYPE_ID(shoal, (shoal::core::heartbeat))
CAF_ADD_TYPE_ID(shoal, (shoal::core::trouble))
CAF_ADD_TYPE_ID(shoal, (shoal::core::leaving))
CAF_ADD_TYPE_ID(shoal, (shoal::core::decided))
CAF_ADD_TYPE_ID(shoal, (shoal::core::diverged))
CAF_ADD_TYPE_ID(shoal, (shoal::core::checkpoint_done))
CAF_ADD_TYPE_ID(shoal, (shoal::core::welcome))
CAF_ADD_TYPE_ID(shoal, (shoal::core::refused))
CAF_ADD_TYPE_ID(shoal, (shoal::core::halt))
CAF_ADD_TYPE_ID(shoal, (shoal::core::prepare))
CAF_ADD_TYPE_ID(shoal, (shoal::core::commit))
CAF_ADD_TYPE_ID(shoal, (shoal::core::drain))
CAF_ADD_TYPE_ID(shoal, (shoal::core::stop))
CAF_ADD_TYPE_ID(shoal, (shoal::core::lease))
CAF_ADD_TYPE_ID(shoal, (shoal::core::stage_report))
CAF_ADD_TYPE_ID(shoal, (shoal::core::replica_report))
CAF_ADD_TYPE_ID(shoal, (shoal::core::verdict))
CAF_ADD_TYPE_ID(shoal, (shoal::core::mailed_verdict))
CAF_ADD_TYPE_ID(shoal, (shoal::core::parts_written))
CAF_ADD_TYPE_ID(shoal, (shoal::core::question))
CAF_ADD_TYPE_ID(shoal, (shoal::core::answer))
CAF_ADD_TYPE_ID(shoal, (shoal::core::tick))
CAF_ADD_TYPE_ID(shoal, (shoal::core::knock))
CAF_ADD_TYPE_ID(shoal, (shoal::actors::local<shoal::core::supervisor_event>))
CAF_ADD_TYPE_ID(shoal, (shoal::actors::local<shoal::core::member_event>))
CAF_ADD_TYPE_ID(shoal, (shoal::actors::local<std::vector<shoal::core::coordinator_action>>))
CAF_ADD_TYPE_ID(shoal, (shoal::actors::local<shoal::core::runner_get_ready>))
CAF_ADD_TYPE_ID(shoal, (shoal::actors::local<shoal::core::runner_event>))
CAF_ADD_TYPE_ID(shoal, (shoal::actors::local<shoal::core::runner_snapshot>))
CAF_ADD_TYPE_ID(shoal, (shoal::actors::local<shoal::core::parts_written>))
CAF_ADD_TYPE_ID(shoal, (shoal::actors::local<shoal::core::checkpoint_done>))
CAF_END_TYPE_ID_BLOCK(shoal)

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::local<shoal::core::supervisor_event>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::local<shoal::core::member_event>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::local<std::vector<shoal::core::coordinator_action>>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::local<shoal::core::runner_get_ready>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::local<shoal::core::runner_event>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::local<shoal::core::runner_snapshot>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::local<shoal::core::parts_written>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::local<shoal::core::checkpoint_done>)
