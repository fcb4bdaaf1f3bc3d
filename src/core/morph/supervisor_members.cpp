// Who is in: hello, loss, leave, silence.

#include <algorithm>
#include <type_traits>

#include "base/assert.hpp"
#include "core/morph/supervisor_impl.hpp"

namespace shoal::core {

namespace {

std::string name_of(node_id node) { return "node " + std::to_string(node.value); }

}  // namespace

void supervisor_machine::impl::on(const checkpoints_found& event) {
  SHOAL_ASSERT(!started_);
  started_ = true;
  checkpoints_ = event.usable;
  std::ranges::sort(checkpoints_);
  ledger_.job = options_.job_digest;
  ledger_.term = ledger_.term.next();
  if (!ledger_.next_node) ledger_.next_node = {1};
  put_ledger();
  reign_began_ = now_;
  view_ = ledger_.running;
  state_ = ledger_.running ? job_state::adopting : job_state::gathering;
  for (auto& m : ledger_.members) {  // may be alive somewhere: not heard of yet is not dead
    auto& node = roster_.entry(m.who.node);
    node.who = m.who;
    node.at = m.at;
    node.process = m.process;
    node.last_heard = now_;
    node.link_ended = now_;
  }
  say(report_kind::supervisor, "reign " + std::to_string(ledger_.term.value) + " begins, " +
                                 std::to_string(checkpoints_.size()) + " checkpoints are usable");
}

void supervisor_machine::impl::on(const heard& event) {
  if (auto knock = std::get_if<hello>(&event.what)) return admit(event.link, *knock);
  if (state_ == job_state::done) return;
  auto node = roster_.at(event.link);
  if (node == nullptr) return;
  std::visit(
    [&](auto& word) {
      if constexpr (!std::is_same_v<std::decay_t<decltype(word)>, hello>) {
        if (word.from != node->who) return;
        node->last_heard = now_;
        detector_.heard(node->who, now_);
        take(*node, word);
      }
    },
    event.what);
}

// -- hello ----------------------------------------------------------------------------------------

bool supervisor_machine::impl::acceptable(link_id link, const hello& knock) {
  auto refuse = [&](errc code, std::string reason) {
    act(send{link, refused{static_cast<std::uint8_t>(code), std::move(reason)}});
    act(drop_link{link});
    return false;
  };
  if (knock.protocol != protocol_version)
    return refuse(errc::protocol, "this supervisor speaks protocol " +
                                    std::to_string(protocol_version) + ", the node " +
                                    std::to_string(knock.protocol) +
                                    ": run the same version of shoal everywhere");
  if (knock.job != 0 && knock.job != options_.job_digest)
    return refuse(errc::foreign, "this supervisor runs another job than the node's");
  if (!knock.now.from.node && roster_.alive().size() >= node_count_max)
    return refuse(errc::refused, "the job has as many nodes as it can have");
  return true;
}

/// Finds or makes the entry of who knocks, with its ids.
roster_node& supervisor_machine::impl::name(link_id link, const hello& knock) {
  if (auto again = roster_.at(link)) return *again;
  auto who = knock.now.from;
  if (!who.node) {
    who = {ledger_.next_node, {1}};
    ledger_.next_node = ledger_.next_node.next();
    put_ledger();
    auto& node = roster_.entry(who.node);
    node.who = who;
    return node;
  }
  if (who.node >= ledger_.next_node) {  // from before a lost ledger
    ledger_.next_node = who.node.next();
    put_ledger();
  }
  auto& node = roster_.entry(who.node);
  node.starting = false;
  bool other_process = node.who.node && node.process != knock.process;
  if (other_process) who.incarnation = std::max(node.who.incarnation, who.incarnation).next();
  node.who = who;
  return node;
}

void supervisor_machine::impl::admit(link_id link, const hello& knock) {
  if (!acceptable(link, knock)) return;
  if (state_ == job_state::done) {
    act(send{link, stop{ledger_.term, end_code_, "the job is over"}});
    return;
  }
  auto known = roster_.at(link) != nullptr;
  auto& node = name(link, knock);
  bool first_time = node.at == endpoint{};
  auto life_before = node.stood.from;
  if (node.link && node.link != link) act(drop_link{node.link});
  if (!known) roster_.connect(node, link, now_);
  node.at = knock.at;
  node.process = knock.process;
  node.memory_bytes = knock.memory_bytes;
  node.last_heard = now_;
  if (!detector_.watch(node.who, now_)) SHOAL_ASSERT(false);  // bounded by `acceptable`
  tell(node, welcome{ledger_.term, node.who, options_.job_digest, options_.job_text});
  if (known) return;  // a duplicate is answered alike, and that is all
  node.stood = knock.now;
  node.stood.from = node.who;
  raise_highest(knock.now.view);
  say(report_kind::joined,
      name_of(node.who.node) + (first_time ? " joins" : " is back") + " (pid " +
        std::to_string(node.process) + ")",
      node.who.node);
  preparations_ = 0;
  place_arrival(node, life_before.node && life_before != node.who);
}

/// What the arrival means in the present state.
void supervisor_machine::impl::place_arrival(roster_node& node, bool new_life) {
  auto id = node.who.node;
  bool trains = node.stood.doing == activity::training && node.stood.view == view_ && !new_life;
  bool busy = node.stood.doing != activity::idle || node.holds_blocks();
  switch (state_) {
    case job_state::gathering:
      return start_when_enough();
    case job_state::adopting:
      return adopt_when_whole();
    case job_state::halting:
      answers_awaited_.insert(id);
      return tell(node, halt{ledger_.term, view_});
    case job_state::holding:
      return begin_halting(name_of(id) + " has come", false);
    case job_state::preparing:
      if (next_->recipients.contains(id))
        return begin_halting(name_of(id) + " lost its connection while it got ready", false);
      break;
    case job_state::running:
    case job_state::draining:
      if (in_shape(id) && !trains)
        return begin_halting(name_of(id) + " came back without its work", false);
      break;
    default:
      break;
  }
  if (in_shape(id) && trains) return;
  if (busy) tell(node, halt{ledger_.term, view_});  // of an older view, if any
  change_noticed();
}

// -- loss -----------------------------------------------------------------------------------------

void supervisor_machine::impl::on(const link_lost& event) {
  if (auto node = roster_.at(event.link)) lose(*node, event.reason, true);
}

void supervisor_machine::impl::on(const node_exited& event) {
  for (auto& [id, node] : roster_.all()) {
    bool named = event.node && event.node == id;
    if (!named && (event.process == 0 || event.process != node.process)) continue;
    bool was_alive = node.alive;
    if (was_alive) {
      act(drop_link{node.link});
      lose(node, "its process has ended", true);
    }
    node.exited = true;
  }
}

/// The node is not alive any more. `ended`: its connection ended by itself, so it is dead, unless
/// it knocks again soon; otherwise it is only silent, and may live.
void supervisor_machine::impl::lose(roster_node& node, const std::string& reason, bool ended) {
  if (!node.alive) return;
  auto id = node.who.node;
  auto last_sign = node.last_heard;
  roster_.disconnect(node);
  detector_.forget(id);
  if (ended) node.link_ended = now_;
  preparations_ = 0;
  say(report_kind::lost, name_of(id) + " is lost: " + reason, id);
  answers_awaited_.erase(id);
  hear_survivors();  // if it led, what they said before counts now
  bool involved = in_shape(id);
  if (state_ == job_state::preparing) involved = next_->recipients.contains(id);
  if (!involved && state_ != job_state::halting) return;
  clock_.lost();
  switch (state_) {
    case job_state::halting:
      gather_until_ = std::max(gather_until_, now_ + job_.timeouts.gather);
      break;
    case job_state::finishing:
      if (has_checkpoint({job_.training.steps})) break;
      [[fallthrough]];
    case job_state::running:
    case job_state::draining:
    case job_state::preparing:
    case job_state::adopting:
      lost_sign_ = ended ? now_ : last_sign;
      begin_halting(name_of(id) + " is lost", false);
      break;
    default:
      break;
  }
}

/// Silence kills; so does nothing else here.
void supervisor_machine::impl::watch() {
  for (auto& change : detector_.tick(now_)) {
    auto node = roster_.find(change.who.node);
    if (node == nullptr || node->who != change.who) continue;
    bool was_stuck = node->stuck;
    node->suspect = change.now_is == health::suspect;
    node->stuck = change.now_is == health::stuck || (was_stuck && node->suspect);
    if (node->stuck && !was_stuck)
      say(report_kind::stuck, name_of(change.who.node) + " " + change.reason, change.who.node);
    if (change.now_is != health::dead || !node->alive) continue;
    act(drop_link{node->link});
    lose(*node, change.reason, false);
  }
  auto keep = nodes_of(ledger_.shape);
  roster_.forget(keep, now_ - 2 * job_.timeouts.orphan);
}

// -- leaving --------------------------------------------------------------------------------------

void supervisor_machine::impl::on(const leave_asked& event) {
  if (auto node = roster_.find(event.node); node != nullptr && node->alive)
    let_go(*node, "shoal leave");
}

void supervisor_machine::impl::let_go(roster_node& node, const std::string& reason) {
  if (!node.leaving)
    say(report_kind::leaving, name_of(node.who.node) + " is to leave: " + reason, node.who.node);
  node.leaving = true;
  bool needed = in_shape(node.who.node) || node.holds_blocks() ||
                (state_ == job_state::preparing && next_->recipients.contains(node.who.node));
  if (!needed && state_ != job_state::halting) return discharge(node, std::nullopt, reason);
  change_noticed();
}

/// Sends the node away. It ends its connection itself.
void supervisor_machine::impl::discharge(roster_node& node, std::optional<errc> failure,
                                         const std::string& reason) {
  auto code = failure ? static_cast<std::uint8_t>(static_cast<int>(*failure) + 1) : std::uint8_t{0};
  tell(node, stop{ledger_.term, code, reason});
  roster_.disconnect(node);
  detector_.forget(node.who.node);
  node.link_ended = now_;
  answers_awaited_.erase(node.who.node);
}

void supervisor_machine::impl::on(const stop_asked& event) { conclude(event.code, event.reason); }

}  // namespace shoal::core
