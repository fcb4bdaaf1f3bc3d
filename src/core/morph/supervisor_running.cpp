// While a view trains: decisions, arrivals and leaves, the end.

#include <algorithm>

#include "base/assert.hpp"
#include "base/units.hpp"
#include "core/checkpoint/manifest.hpp"
#include "core/morph/supervisor_impl.hpp"
#include "core/plan/link_figures.hpp"

namespace shoal::core {

namespace {

constexpr std::uint32_t last_checkpoint_tries_max = 3;
constexpr std::uint32_t divergences_max = 3;

std::string name_of(node_id node) { return "node " + std::to_string(node.value); }
std::string text(step_id step) { return std::to_string(step.value); }

std::string text(const morph_timing& t) {
  auto part = [](const char* name, nanoseconds d) {
    return std::string(name) + " " + shoal::text_of(d);
  };
  return "pause of " + shoal::text_of(t.pause) + " (" + part("detect", t.detect) + ", " +
         part("agree", t.agree) + ", " + part("rewire", t.rewire) + ", " + part("move", t.move) +
         ", " + part("redo", t.redo) + "), " + std::to_string(t.moved_blocks) + " blocks moved, " +
         std::to_string(t.lost) + " nodes lost, " + std::to_string(t.joined) + " joined";
}

}  // namespace

void supervisor_machine::impl::take(roster_node& node, const heartbeat& word) {
  node.beat = word;
  detector_.heard(word, now_);
  tell(node, lease{ledger_.term, view_, word.at_ns});
  if (node.starting && word.doing != activity::starting) {
    node.starting = false;
    return state_ == job_state::gathering ? start_when_enough() : change_noticed();
  }
  // A safety net: whatever was lost, a member that does not train is asked where it stands.
  bool trains = word.doing == activity::training && word.view == view_;
  if (trains || state_ != job_state::running || !in_shape(node.who.node))
    node.idle_since = now_;
  else if (now_ - node.idle_since > job_.timeouts.answer)
    begin_halting(name_of(node.who.node) + " does not train the view that it was told to", false);
}

void supervisor_machine::impl::take(roster_node& node, const decided& word) {
  // Also while halting: what the old view decided, it decided.
  if (word.what.view != ledger_.running || !ledger_.running) return;
  if (ledger_.shape.replicas[0].stages[0].node != node.who.node) return;
  auto step = word.what.step;
  bool again = step <= newest_;
  newest_ = std::max(newest_, step);
  if (word.what.what == decision::apply || word.what.what == decision::skip) {
    reached_ = step;
    loss_ = word.what.loss.value();
  }
  if (step != told_) act(step_done{word, again});
  preparations_ = 0;
  strikes_.clear();
  refine_profile(word);
  if (word.what.what == decision::abort)
    return conclude(
      errc::not_finite,
      "step " + text(step) + " gave a value that is not finite" +
        (word.offence ? ", first in micro-batch " + std::to_string(word.offence->micro_batch) +
                          " at block " + std::to_string(word.offence->block)
                      : "") +
        "; weights are those after step " + text(step.before()));
  if (state_ != job_state::running && state_ != job_state::draining) return;
  if (auto timing = clock_.decided(now_, step)) {
    auto kind = timing->planned ? "planned change of shape: " : "recovered: ";
    act(report{
      report_kind::morph, kind + text(*timing) + "; now " + text_of(ledger_.shape), {}, timing});
  }
  if (word.what.what == decision::finish) {
    state_ = job_state::finishing;
    finish_until_ = now_ + job_.timeouts.prepare;
    return finish_when_saved();
  }
  if (word.what.last_of_view) return begin_halting("the view was asked to end", true);
  if (!decided_in_view_) {
    decided_in_view_ = true;
    change_noticed();
  }
}

/// A survivor knows of a round whose lead died with its word to us. While the lead lives its own
/// words are still to come, in order, though a survivor's may be here before them.
void supervisor_machine::impl::hear_again(const roster_node& node, const verdict& word) {
  if (word.step <= newest_ || word.view != ledger_.running) return;
  auto lead = roster_.find(ledger_.shape.replicas[0].stages[0].node);
  auto same_life = [&](auto& m) { return lead != nullptr && m.who == lead->who; };
  if (lead != &node && std::ranges::any_of(ledger_.members, same_life) && lead->alive) return;
  newest_ = told_ = word.step;
  if (word.what == decision::apply || word.what == decision::skip) {
    reached_ = word.step;
    loss_ = word.loss.value();
  }
  act(step_done{{node.who, word, word.digest_before, word.validation_loss, {}, {}}, false});
}

void supervisor_machine::impl::hear_survivors() {
  for (auto& [id, node] : roster_.all())
    if (node.alive && node.stood.last_verdict) hear_again(node, *node.stood.last_verdict);
}

void supervisor_machine::impl::refine_profile(const decided& word) {
  for (auto& b : word.blocks) {
    if (b.block >= profile_.blocks.size()) continue;
    auto& cost = profile_.blocks[b.block];
    auto take_in = [](nanoseconds& known, std::uint32_t us) {
      if (us != 0) known += (std::chrono::microseconds(us) - known) / 4;
    };
    take_in(cost.forward, b.forward_us);
    take_in(cost.backward, b.backward_us);
  }
  profile_.link_bytes_per_s = refined_rate(profile_.link_bytes_per_s, word.links.bytes_per_s);
  profile_.link_latency = refined_latency(profile_.link_latency, word.links.one_way_ns);
}

void supervisor_machine::impl::take(roster_node&, const diverged& word) {
  if (word.view != ledger_.running || word.view != view_) return;
  std::string who;
  for (auto odd : word.odd) {
    distrust found{odd, word.block, word.step};
    if (std::ranges::find(ledger_.distrusted, found) == ledger_.distrusted.end())
      ledger_.distrusted.push_back(found);
    who += " " + std::to_string(odd.value);
  }
  say(report_kind::diverged, "replicas disagree on block " + std::to_string(word.block) +
                               " at step " + text(word.step) + "; in doubt: node" + who);
  auto live = roster_.alive().size();
  for (auto odd : word.odd)
    if (word.odd.size() == 1 && ++divergences_[odd] >= divergences_max && live > 1)
      if (auto node = roster_.find(odd); node != nullptr && node->alive)
        discharge(*node, errc::damaged, "computes other bits than the rest, again and again");
  begin_halting("replicas disagree", false);
}

void supervisor_machine::impl::take(roster_node& node, const trouble& word) {
  bool trains =
    state_ == job_state::running || state_ == job_state::draining || state_ == job_state::finishing;
  if (!trains || word.view != view_ || !in_shape(node.who.node)) return;
  if (word.peer) accuse(node.who.node, word.peer, word.reason);
  begin_halting(name_of(node.who.node) + " cannot go on: " + word.reason, false);
}

void supervisor_machine::impl::take(roster_node& node, const leaving& word) {
  let_go(node, word.reason);
}

// -- arrivals and leaves --------------------------------------------------------------------------

/// Someone has come or wants to go: think about it once others had time to do the same, and not
/// before the present view has brought the job forward.
void supervisor_machine::impl::change_noticed() {
  if (state_ == job_state::running) reconsider_at_ = now_ + job_.timeouts.gather;
}

void supervisor_machine::impl::reconsider() {
  if (!reconsider_at_ || now_ < *reconsider_at_ || !decided_in_view_) return;
  reconsider_at_.reset();
  if (reached_.value >= job_.training.steps || who_is_here() == considered_) return;
  considered_ = who_is_here();
  auto made = options_.plan(profile_, plan_nodes(false), ledger_.shape, job_);
  for (auto& [id, node] : roster_.all()) {
    if (!node.alive || !node.leaving) continue;
    if (!in_shape(id)) {
      discharge(node, std::nullopt, "it is not needed");
    } else if (!made && !std::exchange(node.leave_refused, true)) {
      say(report_kind::leaving, name_of(id) + " cannot leave yet: " + made.error().text, id);
    }
  }
  if (!made) return;
  auto now = nodes_of(ledger_.shape), then = nodes_of(made->shape);
  std::ranges::sort(now);
  std::ranges::sort(then);
  if (now == then) return;
  auto lead = roster_.find(ledger_.shape.replicas[0].stages[0].node);
  SHOAL_ASSERT(lead != nullptr);
  state_ = job_state::draining;
  tell(*lead, drain{ledger_.term, view_});
}

// -- checkpoints and the end ----------------------------------------------------------------------

void supervisor_machine::impl::take(roster_node&, const checkpoint_done& word) {
  bool known = has_checkpoint(word.step);
  if (!word.failure.empty()) {
    say(report_kind::checkpoint, "no checkpoint of step " + text(word.step) + ": " + word.failure);
    if (state_ == job_state::finishing && is_final(word.step) && !known)
      try_last_checkpoint_again(word.failure);
    return;
  }
  bool old = !checkpoints_.empty() && word.step < checkpoints_.back();
  if (known || old) return;  // an old one may be deleted already: its word comes again at welcome
  checkpoints_.push_back(word.step);
  std::ranges::sort(checkpoints_);
  auto in_use = state_ == job_state::preparing ? next_->line.meet : step_id{};
  for (auto gone : to_delete(checkpoints_, job_.checkpoint.keep_latest_k, in_use))
    std::erase(checkpoints_, gone);
  say(report_kind::checkpoint, "checkpoint of step " + text(word.step) + " is there");
  if (state_ == job_state::finishing) finish_when_saved();
}

void supervisor_machine::impl::finish_when_saved() {
  if (has_checkpoint({job_.training.steps}))
    conclude(std::nullopt, "all " + std::to_string(job_.training.steps) + " steps are done");
}

/// The nodes still hold the weights: the closing round of a new view writes them again.
void supervisor_machine::impl::try_last_checkpoint_again(const std::string& reason) {
  if (++last_checkpoint_tries_ >= last_checkpoint_tries_max)
    return conclude(errc::io, "the last checkpoint could not be written: " + reason);
  begin_halting("the last checkpoint was not written: " + reason, false);
}

void supervisor_machine::impl::conclude(std::optional<errc> failure, const std::string& reason) {
  end_code_ = failure ? static_cast<std::uint8_t>(static_cast<int>(*failure) + 1) : std::uint8_t{0};
  for (auto& [id, node] : roster_.all())
    if (node.alive) tell(node, stop{ledger_.term, end_code_, reason});
  state_ = job_state::done;
  next_.reset();
  act(finished{failure, reason});
}

}  // namespace shoal::core
