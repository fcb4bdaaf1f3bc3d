#pragma once
// Everything that the actors of a job say to one another, as plain structs. The machines of core/
// take and give them; the shells in actors/ put them on the wire.
//
//        hello, standing, ready, failed, heartbeat, trouble, leaving
//   NODE ------------------------------------------------------------> SUPERVISOR
//        <------------------------------------------------------------
//        welcome, refused, halt, prepare, commit, drain, stop, lease
//
//   STAGE --stage_report--> COORDINATOR --replica_report--> COORDINATOR of replica 0 (the lead)
//   STAGE <-----------------verdict---------------------------------/ ---decided--> SUPERVISOR
//
// A *round* r applies step r: its stages validate the weights of step r-1 if that is due, train,
// and the lead decides. One closing round after the last step validates and digests only.
//
// Every message to a machine names its sender's (node, incarnation) or its term, and its view: a
// machine drops what is stale. No raw float (see base/f64.hpp); lists are bounded by layout.hpp.

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/f64.hpp"
#include "base/strong_id.hpp"
#include "core/checkpoint/messages.hpp"
#include "core/layout.hpp"
#include "core/sender.hpp"

namespace shoal::core {

/// Grows with every change to a message or frame. Peers of another number are refused.
constexpr std::uint32_t protocol_version = 5;

/// What the lead made of a round.
enum class decision : std::uint8_t {
  apply,   ///< apply the summed gradients
  skip,    ///< count the step, leave the weights (a loss or gradient was not finite)
  finish,  ///< the closing round: nothing to apply, the job is done
  abort,   ///< a loss or gradient was not finite and the job says stop
};

/// LEAD to every COORDINATOR and STAGE: what to do with the sums of this round. Deterministic in
/// the job and the round: a round that is decided again is decided alike.
struct verdict {
  view_id view;
  step_id step;  ///< the round
  decision what = decision::apply;
  f64 clip_factor = 1;  ///< multiplies the summed gradients
  f64 learning_rate = 0;
  f64 loss = 0;               ///< mean over the step's micro-batches
  f64 gradient_norm = 0;      ///< before clipping
  bool last_of_view = false;  ///< after this, hold and report your standing: the shape changes
  /// The rest of what is to be told of the round, so that any survivor can tell it when the lead
  /// died with its word to the supervisor.
  std::uint64_t digest_before = 0;     ///< of all weights after step `step - 1`, see model_digest
  std::optional<f64> validation_loss;  ///< of those weights, when due
  friend bool operator==(const verdict&, const verdict&) = default;
  static constexpr auto type_name = "shoal::verdict";
  static auto fields(auto& x) {
    return std::tie(x.view, x.step, x.what, x.clip_factor, x.learning_rate, x.loss, x.gradient_norm,
                    x.last_of_view, x.digest_before, x.validation_loss);
  }
};

/// A block that a node has in memory.
struct held_block {
  block_index block = 0;
  std::uint64_t digest = 0;  ///< of parameters at the holder's applied step
  friend auto operator<=>(const held_block&, const held_block&) = default;
  static constexpr auto type_name = "shoal::held_block";
  static auto fields(auto& x) { return std::tie(x.block, x.digest); }
};

/// What a node is doing. `starting`: it is in, but its engine is still being made; only said in
/// heartbeats, so that the job does not pause for a newcomer that could not begin yet.
enum class activity : std::uint8_t { idle, holding, preparing, prepared, training, starting };

/// NODE to SUPERVISOR: where I stand. Sent inside hello, and once training of a view has stopped.
struct standing {
  sender from;
  view_id view;  ///< highest view heard of
  activity doing = activity::idle;
  step_id applied;        ///< step of the parameters in memory
  bool has_sums = false;  ///< total gradients of round applied+1 are complete for all held blocks
  std::optional<verdict> last_verdict;  ///< newest one applied, so that others can roll forward
  std::vector<held_block> blocks;
  friend bool operator==(const standing&, const standing&) = default;
  static constexpr auto type_name = "shoal::standing";
  static auto fields(auto& x) {
    return std::tie(x.from, x.view, x.doing, x.applied, x.has_sums, x.last_verdict, x.blocks);
  }
};

/// NODE to SUPERVISOR: let me in. `now.from` is zero for a newcomer; a node that knocks again gives
/// the ids that it had.
struct hello {
  std::uint32_t protocol = protocol_version;
  std::string build;      ///< version of the program
  std::uint64_t job = 0;  ///< digest of the job file, 0 when not yet known
  endpoint at;
  std::uint64_t process = 0;  ///< pid, for people
  std::uint64_t memory_bytes = 0;
  standing now;
  friend bool operator==(const hello&, const hello&) = default;
  static constexpr auto type_name = "shoal::hello";
  static auto fields(auto& x) {
    return std::tie(x.protocol, x.build, x.job, x.at, x.process, x.memory_bytes, x.now);
  }
};

/// SUPERVISOR to NODE: you are in, under this name.
struct welcome {
  term_id term;
  sender you;
  std::uint64_t job = 0;  ///< digest of `job_text`
  std::string job_text;   ///< the job file, canonical, all overrides applied
  friend bool operator==(const welcome&, const welcome&) = default;
  static constexpr auto type_name = "shoal::welcome";
  static auto fields(auto& x) { return std::tie(x.term, x.you, x.job, x.job_text); }
};

/// SUPERVISOR to NODE: you are not in, for good. The node exits.
struct refused {
  std::uint8_t code = 0;  ///< an errc
  std::string reason;
  friend bool operator==(const refused&, const refused&) = default;
  static constexpr auto type_name = "shoal::refused";
  static auto fields(auto& x) { return std::tie(x.code, x.reason); }
};

/// SUPERVISOR to NODE: stop training any view below `view`, tell your standing.
struct halt {
  term_id term;
  view_id view;
  friend bool operator==(const halt&, const halt&) = default;
  static constexpr auto type_name = "shoal::halt";
  static auto fields(auto& x) { return std::tie(x.term, x.view); }
};

/// Where to get a block that the receiver lacks.
struct block_source {
  block_index block = 0;
  std::vector<node_id> holders;  ///< in order of preference; empty: from the checkpoint, or initial
  friend auto operator<=>(const block_source&, const block_source&) = default;
  static constexpr auto type_name = "shoal::block_source";
  static auto fields(auto& x) { return std::tie(x.block, x.holders); }
};

/// SUPERVISOR to NODE: be ready to train `view` from `step` on. A node without a place in `shape`
/// only rolls forward, serves its blocks to the others, and becomes a spare at commit.
struct prepare {
  term_id term;
  view_id view;
  step_id step;                         ///< everyone meets here: the weights after this step
  std::optional<verdict> roll_forward;  ///< for a node at step-1 that has the sums
  layout shape;
  std::vector<member> members;        ///< of the layout, and of the block sources
  std::vector<block_source> missing;  ///< of the receiver
  step_id checkpoint;  ///< the checkpoint that blocks without holders come from; 0: initial values
  friend bool operator==(const prepare&, const prepare&) = default;
  static constexpr auto type_name = "shoal::prepare";
  static auto fields(auto& x) {
    return std::tie(x.term, x.view, x.step, x.roll_forward, x.shape, x.members, x.missing,
                    x.checkpoint);
  }
};

/// NODE to SUPERVISOR: all blocks of my stage are here, at the step; all peers are connected.
struct ready {
  sender from;
  view_id view;
  std::vector<held_block> blocks;  ///< digests at the meeting step
  friend bool operator==(const ready&, const ready&) = default;
  static constexpr auto type_name = "shoal::ready";
  static auto fields(auto& x) { return std::tie(x.from, x.view, x.blocks); }
};

/// NODE to SUPERVISOR: I could not get ready; nothing is lost.
struct failed {
  sender from;
  view_id view;
  std::uint8_t code = 0;  ///< an errc
  std::string reason;
  node_id suspect;             ///< the peer that did not answer or sent damage; 0: none
  step_id damaged_checkpoint;  ///< the checkpoint that failed its check; 0: none
  friend bool operator==(const failed&, const failed&) = default;
  static constexpr auto type_name = "shoal::failed";
  static auto fields(auto& x) {
    return std::tie(x.from, x.view, x.code, x.reason, x.suspect, x.damaged_checkpoint);
  }
};

/// SUPERVISOR to NODE: everyone is ready; train.
struct commit {
  term_id term;
  view_id view;
  friend bool operator==(const commit&, const commit&) = default;
  static constexpr auto type_name = "shoal::commit";
  static auto fields(auto& x) { return std::tie(x.term, x.view); }
};

/// SUPERVISOR to the NODE of the lead: end the view with your next verdict.
struct drain {
  term_id term;
  view_id view;
  friend bool operator==(const drain&, const drain&) = default;
  static constexpr auto type_name = "shoal::drain";
  static auto fields(auto& x) { return std::tie(x.term, x.view); }
};

/// SUPERVISOR to NODE: leave; the job is over or you asked to go.
struct stop {
  term_id term;
  std::uint8_t code = 0;  ///< an errc + 1, or 0 for success
  std::string reason;
  friend bool operator==(const stop&, const stop&) = default;
  static constexpr auto type_name = "shoal::stop";
  static auto fields(auto& x) { return std::tie(x.term, x.code, x.reason); }
};

/// NODE to SUPERVISOR, a few times a second: I live, and this is how far the work has come.
struct heartbeat {
  sender from;
  view_id view;
  step_id step;
  std::uint32_t micro_batch = 0;  ///< actions of the schedule finished in this round
  activity doing = activity::idle;
  std::uint64_t resident_bytes = 0;
  std::uint64_t at_ns = 0;  ///< the node's own clock, for `lease` to give back
  friend bool operator==(const heartbeat&, const heartbeat&) = default;
  static constexpr auto type_name = "shoal::heartbeat";
  static auto fields(auto& x) {
    return std::tie(x.from, x.view, x.step, x.micro_batch, x.doing, x.resident_bytes, x.at_ns);
  }
};

/// SUPERVISOR to NODE, for each heartbeat: I have heard you. The node may train without hearing
/// more until timeouts.orphan after it *sent* that heartbeat; so a supervisor that has not heard a
/// node for that long knows that it holds, whatever the network delays.
struct lease {
  term_id term;
  view_id view;             ///< the supervisor's present one: who trains an older one stops
  std::uint64_t at_ns = 0;  ///< the heartbeat's
  friend bool operator==(const lease&, const lease&) = default;
  static constexpr auto type_name = "shoal::lease";
  static auto fields(auto& x) { return std::tie(x.term, x.view, x.at_ns); }
};

/// NODE to SUPERVISOR: my work in `view` cannot go on, because of `peer` (0: myself). The node has
/// halted by itself and holds its state; a standing follows.
struct trouble {
  sender from;
  view_id view;
  node_id peer;
  std::string reason;
  friend bool operator==(const trouble&, const trouble&) = default;
  static constexpr auto type_name = "shoal::trouble";
  static auto fields(auto& x) { return std::tie(x.from, x.view, x.peer, x.reason); }
};

/// NODE to SUPERVISOR: I have been asked to go; take my blocks. Also sent on its behalf by `leave`.
struct leaving {
  sender from;
  std::string reason;
  friend bool operator==(const leaving&, const leaving&) = default;
  static constexpr auto type_name = "shoal::leaving";
  static auto fields(auto& x) { return std::tie(x.from, x.reason); }
};

/// What a stage knows of one of its blocks in a round.
struct block_report {
  block_index block = 0;
  std::uint64_t digest = 0;      ///< of the parameters that the round started from
  f64 squared_norm = 0;          ///< of the summed gradient; tied copies after the first count zero
  std::uint32_t forward_us = 0;  ///< mean time of one micro-batch through it, for the planner
  std::uint32_t backward_us = 0;  ///< recompute not counted
  friend bool operator==(const block_report&, const block_report&) = default;
  static constexpr auto type_name = "shoal::block_report";
  static auto fields(auto& x) {
    return std::tie(x.block, x.digest, x.squared_norm, x.forward_us, x.backward_us);
  }
};

/// The loss of one micro-batch.
struct micro_batch_loss {
  micro_batch_index micro_batch = 0;
  f64 loss = 0;
  friend bool operator==(const micro_batch_loss&, const micro_batch_loss&) = default;
  static constexpr auto type_name = "shoal::micro_batch_loss";
  static auto fields(auto& x) { return std::tie(x.micro_batch, x.loss); }
};

/// Where a value first stopped being finite, in order of micro-batch and then block.
struct not_finite {
  micro_batch_index micro_batch = 0;
  block_index block = 0;
  friend auto operator<=>(const not_finite&, const not_finite&) = default;
  static constexpr auto type_name = "shoal::not_finite";
  static auto fields(auto& x) { return std::tie(x.micro_batch, x.block); }
};

/// What a link between two nodes was measured with; for plans, never for what is trained.
struct link_figures {
  std::uint64_t bytes_per_s = 0;  ///< that large frames came with; 0: not measured
  std::uint64_t one_way_ns = 0;   ///< half of the least round trip; 0: not measured
  friend bool operator==(const link_figures&, const link_figures&) = default;
  static constexpr auto type_name = "shoal::link_figures";
  static auto fields(auto& x) { return std::tie(x.bytes_per_s, x.one_way_ns); }
};

/// STAGE to COORDINATOR: all sums of my blocks for this round are complete.
struct stage_report {
  sender from;
  view_id view;
  step_id step;
  place at;  ///< the sender's place in the view's layout
  std::vector<block_report> blocks;
  std::vector<micro_batch_loss> losses;             ///< last stage only
  std::vector<micro_batch_loss> validation_losses;  ///< last stage only, when due
  std::optional<not_finite> offence;
  link_figures links;  ///< median over its peers
  friend bool operator==(const stage_report&, const stage_report&) = default;
  static constexpr auto type_name = "shoal::stage_report";
  static auto fields(auto& x) {
    return std::tie(x.from, x.view, x.step, x.at.replica, x.at.stage, x.blocks, x.losses,
                    x.validation_losses, x.offence, x.links);
  }
};

/// COORDINATOR to LEAD: the reports of all stages of a replica, joined in chain order.
struct replica_report {
  sender from;
  view_id view;
  step_id step;
  replica_index replica = 0;
  std::vector<block_report> blocks;
  std::vector<micro_batch_loss> losses;
  std::vector<micro_batch_loss> validation_losses;
  std::optional<not_finite> offence;
  std::vector<link_figures> links;  ///< one a stage at most
  friend bool operator==(const replica_report&, const replica_report&) = default;
  static constexpr auto type_name = "shoal::replica_report";
  static auto fields(auto& x) {
    return std::tie(x.from, x.view, x.step, x.replica, x.blocks, x.losses, x.validation_losses,
                    x.offence, x.links);
  }
};

/// LEAD to SUPERVISOR: a round is decided. Told, not asked: nobody waits for the supervisor.
struct decided {
  sender from;
  verdict what;
  std::uint64_t digest_before = 0;  ///< of all weights after step `what.step - 1`, see model_digest
  std::optional<f64> validation_loss;  ///< of those weights, when due
  std::optional<not_finite> offence;
  std::vector<block_report> blocks;  ///< with the mean times over replicas
  link_figures links;                ///< median over all nodes
  friend bool operator==(const decided&, const decided&) = default;
  static constexpr auto type_name = "shoal::decided";
  static auto fields(auto& x) {
    return std::tie(x.from, x.what, x.digest_before, x.validation_loss, x.offence, x.blocks,
                    x.links);
  }
};

/// LEAD to SUPERVISOR: two replicas hold different bits of one block. The lead does not decide.
struct diverged {
  sender from;
  view_id view;
  step_id step;  ///< of the weights that differ
  block_index block = 0;
  std::vector<node_id> odd;  ///< the minority; all holders when there is no majority
  friend bool operator==(const diverged&, const diverged&) = default;
  static constexpr auto type_name = "shoal::diverged";
  static auto fields(auto& x) { return std::tie(x.from, x.view, x.step, x.block, x.odd); }
};

/// The digest of a whole model: of its blocks' digests in chain order.
std::uint64_t model_digest(const std::vector<std::uint64_t>& block_digests);

}  // namespace shoal::core
