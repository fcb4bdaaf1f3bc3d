#include "core/morph/member_machine.hpp"

#include <algorithm>
#include <type_traits>

#include "base/assert.hpp"
#include "base/units.hpp"

namespace shoal::core {

namespace {

bool works(activity doing) {
  return doing == activity::preparing || doing == activity::prepared || doing == activity::training;
}

view_id view_of(const peer_message& message) {
  return std::visit([](auto& m) { return m.view; }, message);
}

node_id coordinator_of(const prepare& plan, replica_index replica) {
  return plan.shape.replicas[replica].stages[0].node;
}

}  // namespace

member_machine::member_machine(member_options options) : options_(std::move(options)) {
  job_ = options_.job;
}

std::vector<member_action> member_machine::step(time_point now, const member_event& event) {
  actions out;
  if (exited_) return out;
  keep_lease(now, out);
  std::visit([&](auto& e) { on(now, e, out); }, event);
  return out;
}

std::vector<member_action> member_machine::tick(time_point now, const runner_progress& progress,
                                                std::uint64_t resident_bytes) {
  actions out;
  if (exited_) return out;
  if (!lease_) lease_ = now;
  keep_lease(now, out);
  if (now - *lease_ > 2 * options_.timeouts.orphan) {
    leave(errc::unreachable, "no supervisor was heard for twice timeouts.orphan", out);
    return out;
  }
  heartbeat beat;
  beat.from = self_;
  beat.view = doing_ == activity::training ? plan_.view : highest_;
  beat.step = progress.step;
  beat.micro_batch = progress.actions_done;
  beat.doing = started_ ? doing_ : activity::starting;
  beat.resident_bytes = resident_bytes;
  beat.at_ns = static_cast<std::uint64_t>(
    std::chrono::duration_cast<nanoseconds>(now.time_since_epoch()).count());
  tell(beat, out);
  return out;
}

/// Before anything else happens: a node that was frozen, or cut off for too long, must not go on
/// as if nothing had been. To the others it is dead, and they may train without it already.
void member_machine::keep_lease(time_point now, actions& out) {
  auto stalled = last_call_ ? now - *last_call_ : 0ns;
  last_call_ = now;
  if (!works(doing_) || halt_asked_) return;
  if (stalled > options_.timeouts.failure)
    tell(trouble{self_, plan_.view, {}, "it was stalled for " + shoal::text_of(stalled)}, out);
  else if (!lease_ || now - *lease_ <= options_.timeouts.orphan)
    return;
  stop_work(out);
}

// -- the supervisor comes and goes ----------------------------------------------------------------

void member_machine::on(time_point now, const supervisor_found&, actions& out) {
  linked_ = true;
  knocked_ = now;
  welcome_ = false;
  hello knock;
  knock.build = options_.build;
  knock.job = job_;
  knock.at = options_.at;
  knock.process = options_.process;
  knock.memory_bytes = options_.memory_bytes;
  knock.now = where_i_stand();
  out.push_back(to_supervisor{std::move(knock)});
}

void member_machine::on(time_point, const supervisor_lost&, actions&) {
  linked_ = welcome_ = false;
}

void member_machine::on(time_point now, const from_supervisor& event, actions& out) {
  std::visit([&](auto& command) { obey(now, command, out); }, event.what);
}

bool member_machine::fresh(term_id term) {
  if (term < term_) return false;
  term_ = term;
  return true;
}

void member_machine::obey(time_point, const welcome& command, actions& out) {
  if (!fresh(command.term)) return;
  if (job_ != 0 && command.job != job_)
    return leave(errc::refused, "the supervisor runs another job than this node", out);
  if (self_.node && self_ != command.you && works(doing_)) stop_work(out);
  job_ = command.job;
  self_ = command.you;
  lease_ = std::max(lease_.value_or(knocked_), knocked_);
  welcome_ = true;
  out.push_back(joined{command});
  if (untold_) tell(*untold_, out);
  if (leaving_) tell(leaving{self_, leave_reason_}, out);
}

void member_machine::obey(time_point, const refused& command, actions& out) {
  leave(static_cast<errc>(command.code), command.reason, out);
}

void member_machine::obey(time_point, const lease& command, actions& out) {
  if (!fresh(command.term)) return;
  time_point heard{std::chrono::duration_cast<time_point::duration>(nanoseconds(command.at_ns))};
  lease_ = std::max(lease_.value_or(heard), heard);
  hear_of(command.view, out);
}

void member_machine::obey(time_point, const stop& command, actions& out) {
  if (!fresh(command.term)) return;
  if (command.code == 0) return leave(std::nullopt, command.reason, out);
  leave(static_cast<errc>(command.code - 1), command.reason, out);
}

void member_machine::leave(std::optional<errc> failure, const std::string& reason, actions& out) {
  stop_work(out);
  exited_ = true;
  out.push_back(exit_node{failure, reason});
}

void member_machine::on(time_point, const leave_signal& event, actions& out) {
  leaving_ = true;
  leave_reason_ = event.reason;
  if (!self_.node) return leave(std::nullopt, event.reason, out);
  tell(leaving{self_, leave_reason_}, out);
}

// -- views ----------------------------------------------------------------------------------------

void member_machine::obey(time_point, const halt& command, actions& out) {
  if (!fresh(command.term)) return;
  hear_of(command.view, out);
  if (halt_asked_) return;  // the answer is under way
  bool obsolete = !works(doing_) || plan_.view < command.view;
  if (obsolete && !quiet_) return stop_work(out);
  tell(where_i_stand(), out);
}

void member_machine::hear_of(view_id view, actions& out) {
  if (view <= highest_) return;
  highest_ = view;
  if (works(doing_)) stop_work(out);
}

/// Ends whatever the runner does; its answer brings us to `holding`.
void member_machine::stop_work(actions& out) {
  if (coordinating_) out.push_back(stop_coordinator{});
  coordinating_.reset();
  plan_ = {};
  placed_ = commit_waits_ = last_asked_ = false;
  if (quiet_ || halt_asked_) return;
  halt_asked_ = true;
  out.push_back(runner_halt{});
}

void member_machine::obey(time_point, const prepare& command, actions& out) {
  if (!fresh(command.term) || command.view < highest_ || command.view == plan_.view) return;
  hear_of(command.view, out);
  if (halt_asked_ || works(doing_)) {  // the supervisor halts first; this is a safety net
    stop_work(out);
    tell(failed{self_,
                command.view,
                static_cast<std::uint8_t>(errc::internal),
                "was still at work on an older view",
                {},
                {}},
         out);
    return;
  }
  plan_ = command;
  placed_ = find_place(plan_.shape, self_.node, place_);
  quiet_ = false;
  doing_ = activity::preparing;
  out.push_back(runner_get_ready{command, self_});
  auto lead = find_member(coordinator_of(plan_, 0));
  if (lead) leads_.push_back({plan_.view, *lead});
  if (leads_.size() > 2) leads_.erase(leads_.begin());
  if (!placed_ || place_.stage != 0) return;
  coordinating_ = plan_.view;
  out.push_back(
    start_coordinator{plan_.view, self_, plan_.shape, place_.replica, plan_.members, plan_.step});
}

void member_machine::obey(time_point, const commit& command, actions& out) {
  if (!fresh(command.term) || !in_view(command.view)) return;
  if (doing_ == activity::preparing) commit_waits_ = true;
  if (doing_ == activity::prepared) begin(out);
}

void member_machine::begin(actions& out) {
  commit_waits_ = false;
  doing_ = placed_ ? activity::training : activity::idle;
  out.push_back(runner_begin{plan_.view});
  if (!placed_) last_ = {};  // a spare has dropped its blocks
}

void member_machine::obey(time_point, const drain& command, actions& out) {
  if (!fresh(command.term) || !in_view(command.view) || !coordinating_) return;
  out.push_back(to_coordinator{command});
}

// -- the runner -----------------------------------------------------------------------------------

void member_machine::on(time_point, const from_runner& event, actions& out) {
  std::visit([&](auto& e) { happened(e, out); }, event.what);
}

void member_machine::happened(const runner_prepared& event, actions& out) {
  if (!in_view(event.view) || doing_ != activity::preparing) return;
  doing_ = activity::prepared;
  last_ = {};
  last_.applied = plan_.step;
  last_.blocks = event.blocks;
  tell(ready{self_, event.view, event.blocks}, out);
  if (commit_waits_) begin(out);
}

void member_machine::happened(const runner_failed& event, actions& out) {
  if (!in_view(event.view) || !works(doing_)) return;
  if (doing_ == activity::training) {
    tell(trouble{self_, event.view, event.suspect, event.why.text}, out);
    stop_work(out);
  } else {  // the supervisor will halt everyone; until then nothing is given up
    tell(failed{self_, event.view, static_cast<std::uint8_t>(event.why.code), event.why.text,
                event.suspect, event.damaged_checkpoint},
         out);
  }
}

void member_machine::happened(const runner_halted& event, actions& out) {
  if (!halt_asked_ && !last_asked_) return;  // a second answer, to a halt that overtook a verdict
  halt_asked_ = last_asked_ = false;
  if (coordinating_) out.push_back(stop_coordinator{});
  coordinating_.reset();
  plan_ = {};
  placed_ = commit_waits_ = false;
  quiet_ = true;
  last_ = event.now;
  doing_ = last_.blocks.empty() ? activity::idle : activity::holding;
  tell(where_i_stand(), out);
}

void member_machine::happened(const runner_reported& event, actions& out) {
  auto report = event.report;
  report.from = self_;
  if (!in_view(report.view) || doing_ != activity::training) return;
  auto coordinator = find_member(coordinator_of(plan_, place_.replica));
  SHOAL_ASSERT(coordinator != nullptr);
  if (coordinator->who == self_)
    out.push_back(to_coordinator{std::move(report)});
  else
    out.push_back(to_peer{*coordinator, std::move(report)});
}

void member_machine::happened(const runner_snapshot& event, actions& out) {
  out.push_back(write_checkpoint{event});
}

// -- peers, coordinator, writer -------------------------------------------------------------------

void member_machine::on(time_point, const from_peer& event, actions& out) {
  hear_of(view_of(event.what), out);
  if (auto parts = std::get_if<parts_written>(&event.what)) {
    out.push_back(collect_parts{*parts});
    return;
  }
  if (!in_view(view_of(event.what)) || find_member(event.from) == nullptr) return;
  if (auto word = std::get_if<verdict>(&event.what)) return hear(event.from, *word, out);
  if (!coordinating_) return;
  std::visit(
    [&]<class T>(const T& report) {
      if constexpr (std::is_same_v<T, stage_report> || std::is_same_v<T, replica_report>) {
        auto peer = find_member(event.from);
        if (peer->who == report.from) out.push_back(to_coordinator{report});
      }
    },
    event.what);
}

/// Verdicts go lead -> coordinators -> stages; a node may be two of them.
void member_machine::hear(node_id from, const verdict& word, actions& out) {
  if (!placed_ || doing_ != activity::training) return;
  if (coordinating_ && from != self_.node) {
    if (from == coordinator_of(plan_, 0)) out.push_back(to_coordinator{word});
  } else if (from == coordinator_of(plan_, place_.replica)) {
    last_asked_ = word.last_of_view;
    out.push_back(runner_decide{word});
  }
}

void member_machine::on(time_point, const peer_lost& event, actions& out) {
  if (!works(doing_) || find_member(event.peer) == nullptr) return;
  place at;  // a node that only served us its blocks may go once we have them
  if (!find_place(plan_.shape, event.peer, at) && doing_ != activity::preparing) return;
  happened(runner_failed{plan_.view, {errc::unreachable, event.reason}, event.peer, {}}, out);
}

void member_machine::on(time_point, const from_coordinator& event, actions& out) {
  std::visit(
    [&]<class T>(T word) {
      word.from = self_;
      if constexpr (std::is_same_v<T, trouble>) {
        if (!in_view(word.view)) return;
        tell(std::move(word), out);
        stop_work(out);
      } else {
        tell(std::move(word), out);
      }
    },
    event.what);
}

void member_machine::on(time_point, const from_writer& event, actions& out) {
  if (auto done = std::get_if<checkpoint_done>(&event.what)) {
    untold_ = *done;
    untold_->from = self_;
    tell(*untold_, out);
    return;
  }
  auto parts = std::get<parts_written>(event.what);
  parts.from = self_;
  auto lead = std::ranges::find(leads_, parts.view, &view_lead::view);
  if (lead == leads_.end()) return;  // too late: its lead is long gone
  if (lead->lead.who == self_)
    out.push_back(collect_parts{std::move(parts)});
  else
    out.push_back(to_peer{lead->lead, std::move(parts)});
}

// -- helpers --------------------------------------------------------------------------------------

/// What cannot be told now is in the next hello's standing, or told again at welcome.
void member_machine::tell(node_message message, actions& out) {
  if (linked_ && welcome_) out.push_back(to_supervisor{std::move(message)});
}

const member* member_machine::find_member(node_id node) const {
  for (auto& m : plan_.members)
    if (m.who.node == node) return &m;
  return nullptr;
}

standing member_machine::where_i_stand() const {
  standing now = last_;
  now.from = self_;
  now.view = doing_ == activity::training ? plan_.view : highest_;
  now.doing = doing_;
  return now;
}

}  // namespace shoal::core
