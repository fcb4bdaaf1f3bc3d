// From one view to the next: halt, meet, plan, prepare, commit.

#include <algorithm>

#include "base/assert.hpp"
#include "core/morph/supervisor_impl.hpp"

namespace shoal::core {

namespace {

constexpr std::uint32_t preparations_max = 10;  // without a step or a change of nodes in between
constexpr std::uint32_t strikes_max = 3;        // of one node against another

bool works(activity doing) {
  return doing == activity::preparing || doing == activity::prepared || doing == activity::training;
}

std::string name_of(node_id node) { return "node " + std::to_string(node.value); }

}  // namespace

// -- before the first view, and after a restart ---------------------------------------------------

void supervisor_machine::impl::start_when_enough() {
  std::size_t here = plan_nodes(false).size();
  if (here < std::max<std::size_t>(1, job_.parallelism.nodes_min)) {
    enough_since_.reset();
    if (now_ - reign_began_ < job_.timeouts.failure) return;
    auto reason = std::to_string(here) + " of at least " +
                  std::to_string(std::max(1u, job_.parallelism.nodes_min)) + " nodes are here";
    if (reason != std::exchange(hold_reason_, reason))
      say(report_kind::holding, "waiting: " + reason);
    return;
  }
  if (!enough_since_) enough_since_ = now_;
  bool more_to_come = plan_nodes(true).size() > here;
  auto patience = more_to_come ? job_.timeouts.answer : job_.timeouts.failure;
  if (here >= job_.nodes.local || now_ - *enough_since_ >= patience)
    begin_halting("enough nodes are here", false);
}

/// After a restart: when everyone trains the view of the ledger, nothing needs to be done.
void supervisor_machine::impl::adopt_when_whole() {
  bool whole = true, broken = false, absent = false;
  for (auto& m : ledger_.members) {
    auto node = roster_.find(m.who.node);
    bool trains = node != nullptr && node->alive && node->who == m.who &&
                  node->stood.doing == activity::training && node->stood.view == ledger_.running;
    whole = whole && trains;
    broken = broken || (node != nullptr && node->alive && !trains);
    absent = absent || (node != nullptr && !node->alive && !node->exited);
  }
  if (whole) {
    state_ = job_state::running;
    view_ = ledger_.running;
    for (auto& m : ledger_.members)
      reached_ = std::max(reached_, roster_.find(m.who.node)->stood.applied);
    say(report_kind::supervisor, "adopted view " + std::to_string(view_.value) +
                                   ", which trains: " + text_of(ledger_.shape));
    return change_noticed();
  }
  bool late = now_ - reign_began_ >= job_.timeouts.failure + job_.timeouts.gather;
  if (!late && (!broken || absent)) return;  // who is under way brings blocks
  if (roster_.alive().empty()) return hold("no node has come back yet");
  begin_halting(broken ? "a node of the last view does not train it any more"
                       : "not all nodes of the last view came back",
                false);
}

// -- halting --------------------------------------------------------------------------------------

void supervisor_machine::impl::raise_highest(view_id view) {
  if (view <= ledger_.highest) return;
  ledger_.highest = view;
  put_ledger();
}

/// Everyone stops, and says where he stands.
void supervisor_machine::impl::begin_halting(const std::string& reason, bool planned) {
  if (state_ == job_state::running || state_ == job_state::draining ||
      state_ == job_state::finishing || state_ == job_state::preparing)
    say(report_kind::trouble, "halting view " + std::to_string(view_.value) + ": " + reason);
  clock_.begin(now_, std::exchange(lost_sign_, std::nullopt), planned);
  state_ = job_state::halting;
  next_.reset();
  reconsider_at_.reset();
  raise_highest(ledger_.highest.next());
  view_ = ledger_.highest;
  answers_awaited_.clear();
  // The more has failed in a row, the longer we give the network to come to rest.
  auto gather = job_.timeouts.gather * (1u << std::min(preparations_, 6u));
  gather_until_ = planned && preparations_ == 0 ? now_ : now_ + gather;
  answer_until_ = gather_until_ + job_.timeouts.answer;
  for (auto& [id, node] : roster_.all()) {
    if (!node.alive) continue;
    answers_awaited_.insert(id);
    tell(node, halt{ledger_.term, view_});
  }
}

void supervisor_machine::impl::take(roster_node& node, const standing& word) {
  node.stood = word;
  if (word.last_verdict) hear_again(node, *word.last_verdict);
  if (works(word.doing)) return;
  for (auto& m : ledger_.members)
    if (m.who == node.who && word.view > ledger_.running) old_view_ended_ = true;
  if (word.view > ledger_.highest) {  // a view that we know nothing of: above it we go
    raise_highest(word.view);
    if (state_ == job_state::halting) return begin_halting("a node has seen a higher view", false);
  }
  if (state_ != job_state::halting || word.view < view_) return;
  answers_awaited_.erase(node.who.node);
  go_on_when_answered();
}

void supervisor_machine::impl::go_on_when_answered() {
  if (now_ >= answer_until_)
    for (auto id : std::set<node_id>(answers_awaited_)) {
      auto& node = *roster_.find(id);
      act(drop_link{node.link});
      lose(node, "gave no answer to a halt within timeouts.answer", false);
    }
  if (answers_awaited_.empty() && now_ >= gather_until_) plan_next();
}

/// A view may start when the old one can decide nothing any more: one of its members has halted
/// (each round needs all), or all are dead, or have been unheard of for so long that they hold.
/// Dead is also whose connection ended and who did not knock again: a living node does so within
/// timeouts.failure, or has found out by then that it was frozen. That leaves one way to train
/// twice for a while: a network that ends a connection *and* keeps the node from making a new one.
/// It costs work, not bits; waiting for timeouts.orphan after every crash would cost more.
bool supervisor_machine::impl::old_view_over(std::string& why) const {
  if (!ledger_.running || old_view_ended_) return true;
  for (auto& m : ledger_.members) {
    auto node = roster_.find(m.who.node);
    if (node == nullptr || node->who != m.who || node->exited) continue;
    bool dead = node->link_ended && now_ - *node->link_ended > 2 * job_.timeouts.failure;
    if (dead || now_ - node->last_heard > job_.timeouts.orphan) continue;
    why = name_of(m.who.node) + " may still train view " + std::to_string(ledger_.running.value) +
          ": it is awaited, or a sign of its death";
    return false;
  }
  return true;
}

void supervisor_machine::impl::hold(const std::string& reason) {
  state_ = job_state::holding;
  if (reason != hold_reason_) say(report_kind::holding, "the job holds: " + reason);
  hold_reason_ = reason;
}

void supervisor_machine::impl::resume_when_safe() {
  std::string why;
  if (held_for_safety_ && !roster_.alive().empty() && old_view_over(why))
    begin_halting("the old view is over", false);
}

// -- planning -------------------------------------------------------------------------------------

std::uint64_t supervisor_machine::impl::memory_of(const roster_node& node) const {
  return job_.nodes.memory.value != 0 ? job_.nodes.memory.value : node.memory_bytes;
}

std::vector<plan_node> supervisor_machine::impl::plan_nodes(bool all) const {
  std::vector<plan_node> nodes;
  for (auto& [id, node] : roster_.all())
    if (node.alive && (all || (!node.leaving && !node.starting)))
      nodes.push_back({id, 1.0, memory_of(node)});
  return nodes;
}

std::set<std::pair<node_id, bool>> supervisor_machine::impl::who_is_here() const {
  std::set<std::pair<node_id, bool>> here;
  for (auto& [id, node] : roster_.all())
    if (node.alive && !node.starting) here.emplace(id, node.leaving);
  return here;
}

/// Plans for those who stay and could begin at once or, if they are too few, for everyone.
bool supervisor_machine::impl::plan_layout(plan_result& planned) {
  considered_ = who_is_here();
  auto made = options_.plan(profile_, plan_nodes(false), ledger_.shape, job_);
  auto all = plan_nodes(true);
  if (!made && made.error().code == errc::too_few_nodes && all.size() > plan_nodes(false).size())
    made = options_.plan(profile_, all, ledger_.shape, job_);
  if (made) {
    planned = std::move(*made);
    return true;
  }
  if (made.error().code == errc::too_few_nodes)
    hold(made.error().text);
  else
    conclude(made.error().code, made.error().text);
  return false;
}

void supervisor_machine::impl::plan_next() {
  std::string why;
  held_for_safety_ = !old_view_over(why);
  if (held_for_safety_) return hold(why);
  if (roster_.alive().empty()) return hold("no node is here");
  plan_result planned;
  if (!plan_layout(planned)) return;
  if (++preparations_ > preparations_max)
    return conclude(errc::no_progress, "no step was decided in " +
                                         std::to_string(preparations_max) +
                                         " attempts to get going; see the events before");
  recovery_input input{
    static_cast<std::uint32_t>(profile_.blocks.size()), {}, checkpoints_, ledger_.distrusted};
  for (auto& [id, node] : roster_.all())
    if (node.alive) input.standings.push_back(node.stood);
  next_.emplace();
  next_->line = options_.recover(input);
  for (auto& odd : next_->line.outvoted) {
    if (std::ranges::find(ledger_.distrusted, odd) != ledger_.distrusted.end()) continue;
    ledger_.distrusted.push_back(odd);
    say(report_kind::diverged,
        name_of(odd.node) + " holds other bits of block " + std::to_string(odd.block) +
          " at step " + std::to_string(odd.step.value) + ": they are not used",
        odd.node);
  }
  send_prepares(planned);
}

void supervisor_machine::impl::send_prepares(const plan_result& planned) {
  SHOAL_ASSERT(check(planned.shape, static_cast<std::uint32_t>(profile_.blocks.size()),
                     job_.training.micro_batches, errc::internal));
  auto& p = *next_;
  p.shape = planned.shape;
  plan_reason_ = planned.reason;
  hold_reason_.clear();
  prepare_input input{ledger_.term, view_,   p.shape, p.line, has_checkpoint(p.line.meet),
                      {},           strikes_};
  std::uint32_t joined = 0;
  for (auto node : nodes_of(p.shape)) {
    p.awaited.insert(node);
    if (!in_shape(node)) ++joined;
  }
  for (auto& [id, node] : roster_.all())
    if (node.alive && (p.awaited.contains(id) || node.holds_blocks()))
      input.nodes.push_back(node.as_member());
  std::uint64_t moved = 0;
  state_ = job_state::preparing;
  p.until = now_ + job_.timeouts.prepare;
  for (auto& [id, message] : make_prepares(input)) {
    p.recipients.insert(id);
    if (message.missing.empty()) p.complete.insert(id);
    moved += message.missing.size();
    tell(*roster_.find(id), std::move(message));
  }
  clock_.agreed(now_, p.line.meet, moved, joined);
  say(report_kind::supervisor, "preparing view " + std::to_string(view_.value) + " from step " +
                                 std::to_string(p.line.meet.value) + ": " + text_of(p.shape) +
                                 "; " + p.line.reason + "; " + planned.reason);
}

// -- preparing ------------------------------------------------------------------------------------

void supervisor_machine::impl::take(roster_node& node, const ready& word) {
  if (state_ != job_state::preparing || word.view != view_) return;
  if (next_->awaited.erase(node.who.node) == 0) return;
  next_->ready[node.who.node] = word.blocks;
  if (next_->complete.contains(node.who.node)) clock_.connected(now_);
  if (next_->awaited.empty() && replicas_agree()) commit_view();
}

void supervisor_machine::impl::take(roster_node& node, const failed& word) {
  if (state_ == job_state::running || state_ == job_state::draining)  // it crossed our commit
    return take(node, trouble{word.from, word.view, word.suspect, word.reason});
  if (state_ != job_state::preparing || word.view != view_) return;
  if (!next_->recipients.contains(node.who.node)) return;
  auto text = name_of(node.who.node) + " could not get ready: " + word.reason;
  if (word.damaged_checkpoint && std::erase(checkpoints_, word.damaged_checkpoint) != 0)
    say(report_kind::checkpoint, "checkpoint " + std::to_string(word.damaged_checkpoint.value) +
                                   " is not used any more: " + word.reason);
  if (word.suspect) accuse(node.who.node, word.suspect, word.reason);
  begin_halting(text, false);
}

void supervisor_machine::impl::accuse(node_id reporter, node_id suspect,
                                      const std::string& reason) {
  if (++strikes_[{reporter, suspect}] < strikes_max || reporter == suspect) return;
  auto node = roster_.find(suspect);
  if (node == nullptr || !node->alive || roster_.alive().size() < 2) return;
  say(report_kind::lost,
      name_of(suspect) + " is sent away: " + name_of(reporter) + " says for the " +
        std::to_string(strikes_max) + "rd time: " + reason,
      suspect);
  std::erase_if(strikes_,
                [&](auto& s) { return s.first.first == suspect || s.first.second == suspect; });
  discharge(*node, errc::unreachable, reason);
}

/// Everyone is ready; do those who hold the same block hold the same bits?
bool supervisor_machine::impl::replicas_agree() {
  std::map<block_index, std::vector<ballot>> ballots;
  for (auto& [node, blocks] : next_->ready)
    for (auto& b : blocks) ballots[b.block].push_back({node, b.digest});
  bool agree = true;
  for (auto& [block, cast] : ballots)
    for (auto odd : outvoted(cast)) {
      agree = false;
      distrust found{odd, block, next_->line.meet};
      if (std::ranges::find(ledger_.distrusted, found) == ledger_.distrusted.end())
        ledger_.distrusted.push_back(found);
      say(report_kind::diverged,
          name_of(odd) + " got ready with other bits of block " + std::to_string(block), odd);
    }
  if (!agree) begin_halting("replicas do not agree on their weights", false);
  return agree;
}

void supervisor_machine::impl::commit_view() {
  ledger_.running = view_;
  ledger_.shape = next_->shape;
  ledger_.distrusted.clear();
  ledger_.members.clear();
  for (auto id : nodes_of(ledger_.shape)) {
    auto& node = *roster_.find(id);
    ledger_.members.push_back({node.who, node.at, node.process});
  }
  put_ledger();
  auto prepared = std::move(*next_);
  next_.reset();
  state_ = job_state::running;
  old_view_ended_ = decided_in_view_ = false;
  reached_ = prepared.line.meet;
  ++morphs_;
  clock_.committed(now_);
  for (auto& m : ledger_.members) roster_.find(m.who.node)->idle_since = now_;
  for (auto id : prepared.recipients) {
    auto& node = *roster_.find(id);
    if (in_shape(id) || !node.leaving) {
      tell(node, commit{ledger_.term, view_});
      if (!in_shape(id)) node.stood = {};  // a spare now: it drops its blocks
    }
  }
  for (auto& [id, node] : roster_.all())
    if (node.alive && node.leaving && !in_shape(id))
      discharge(node, std::nullopt, "its blocks are in other hands");
  change_noticed();
}

}  // namespace shoal::core
