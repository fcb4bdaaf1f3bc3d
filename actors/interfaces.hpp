#pragma once
// Every actor interface, in one place: to see who says what to whom, read this. The messages
// themselves are in core/messages.hpp; here are only those that no machine knows.
//
// What is `local`, or listed after INTERNAL, stays inside one process: it has no name on the
// network, and the published handles do not offer it.

#include "actors/caf/adapt.hpp"
#include "actors/system.hpp"
#include "core/messages.hpp"
#include "core/morph/member_machine.hpp"
#include "core/step/coordinator_machine.hpp"

namespace shoal::core {

// -- messages that only actors know ---------------------------------------------------------------

/// COORDINATOR to a STAGE or COORDINATOR of another NODE: the lead's verdict, with who passes it
/// on.
struct mailed_verdict {
  sender from;
  verdict word;
  friend bool operator==(const mailed_verdict&, const mailed_verdict&) = default;
  static constexpr auto type_name = "shoal::mailed_verdict";
  static auto fields(auto& x) { return std::tie(x.from, x.word); }
};

/// SUPERVISOR to NODE: I have given this connection up; if you are alive, knock again.
struct dropped {
  friend bool operator==(const dropped&, const dropped&) = default;
  static constexpr auto type_name = "shoal::dropped";
  static auto fields(auto&) { return std::tie(); }
};

/// Somebody's question to the SUPERVISOR, for `shoal status` and `shoal leave`.
struct question {
  std::string what;  ///< "status" or "leave"
  node_id node;      ///< leave: whom
  friend bool operator==(const question&, const question&) = default;
  static constexpr auto type_name = "shoal::question";
  static auto fields(auto& x) { return std::tie(x.what, x.node); }
};

/// Answers are at most so long, to fit into a message.
constexpr std::size_t answer_bytes_max = message_bytes_max - 1024;

/// The answer: JSON, or with `refused` a sentence.
struct answer {
  bool refused = false;
  std::string text;
  friend bool operator==(const answer&, const answer&) = default;
  static constexpr auto type_name = "shoal::answer";
  static auto fields(auto& x) { return std::tie(x.refused, x.text); }
};

}  // namespace shoal::core

namespace shoal::actors {

/// An actor to itself: time has passed.
struct tick {};
/// NODE to itself: knock at the supervisor. The first comes from the program once the port is
/// known.
struct knock {};
/// NODE to itself: try again to reach this peer.
struct redial {
  core::sender peer;
};
/// The program to the SUPERVISOR: end once all nodes have hung up, or soon.
struct hang_up {};
/// SUPERVISOR to itself: soon is now.
struct hang_up_now {};

}  // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::tick)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::knock)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::redial)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::hang_up)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::hang_up_now)

namespace shoal::actors {

// -- interfaces -----------------------------------------------------------------------------------

/// The SUPERVISOR decides which nodes train which layout.
using supervisor_actor = actor_of<
  // Lets a node in, or back in. Anything else is heard only through a connection that began so.
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
  core::answer(core::question)>;

using supervisor_inside =
  extended<supervisor_actor,
           // INTERNAL: an event from the program around it: an exited process, a stop.
           void(local<core::supervisor_event>),
           // INTERNAL: looks at deadlines and silence.
           void(tick),
           // INTERNAL: the program ends.
           void(hang_up),
           // INTERNAL: the nodes have had their time to hang up.
           void(hang_up_now)>;

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
  // SUPERVISOR: I listen to this connection no more.
  void(core::dropped),
  // A STAGE elsewhere, for the COORDINATOR here.
  void(core::stage_report),
  // A COORDINATOR elsewhere, for the lead here.
  void(core::replica_report),
  // A COORDINATOR elsewhere, for the COORDINATOR or the STAGE here.
  void(core::mailed_verdict),
  // A CHECKPOINT WRITER elsewhere, for the lead's here.
  void(core::parts_written)>;

using node_inside =
  extended<node_actor,
           // INTERNAL: from STAGE, CHECKPOINT WRITER or the program: an event for the machine.
           void(local<core::member_event>),
           // INTERNAL: from COORDINATOR: what its machine wants done.
           void(local<std::vector<core::coordinator_action>>),
           // INTERNAL: the engine is made, or could not be.
           void(local<result<node_engine>>),
           // INTERNAL: heartbeat.
           void(tick),
           // INTERNAL: looks for the supervisor.
           void(knock),
           // INTERNAL: looks for a peer.
           void(redial)>;

/// The STAGE stands between the NODE and the thread that trains.
using stage_actor = actor_of<
  // NODE: the engine is made; the first message.
  void(local<node_engine>),
  // NODE: get ready.
  void(local<core::runner_get_ready>),
  // NODE: train.
  void(local<core::runner_begin>),
  // NODE: the word on the round.
  void(core::verdict),
  // NODE: stop at once.
  void(local<core::runner_halt>),
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
  // INTERNAL: the writing thread has completed a checkpoint, or could not.
  void(local<core::checkpoint_done>)>;

}  // namespace shoal::actors

// -- what may cross the network -------------------------------------------------------------------

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
CAF_ADD_TYPE_ID(shoal, (shoal::core::dropped))
CAF_ADD_TYPE_ID(shoal, (shoal::core::stage_report))
CAF_ADD_TYPE_ID(shoal, (shoal::core::replica_report))
CAF_ADD_TYPE_ID(shoal, (shoal::core::verdict))
CAF_ADD_TYPE_ID(shoal, (shoal::core::mailed_verdict))
CAF_ADD_TYPE_ID(shoal, (shoal::core::parts_written))
CAF_ADD_TYPE_ID(shoal, (shoal::core::question))
CAF_ADD_TYPE_ID(shoal, (shoal::core::answer))
CAF_END_TYPE_ID_BLOCK(shoal)
