#include "core/step/coordinator_machine.hpp"

#include <algorithm>
#include <map>

#include "base/assert.hpp"
#include "core/morph/recovery.hpp"
#include "core/plan/link_figures.hpp"
#include "core/schedule/schedule.hpp"
#include "core/step/decide.hpp"

namespace shoal::core {

coordinator_machine::coordinator_machine(coordinator_options options)
  : options_(std::move(options)), round_(options_.step.next()) {
  SHOAL_ASSERT(options_.replica < options_.shape.replicas.size());
  SHOAL_ASSERT(options_.shape.replicas[options_.replica].stages[0].node == options_.self.node);
  stages_.resize(options_.shape.replicas[options_.replica].stages.size());
  if (leads()) replicas_.resize(options_.shape.replicas.size());
}

std::vector<coordinator_action> coordinator_machine::step(time_point,
                                                          const coordinator_event& event) {
  actions out;
  if (!ended_) std::visit([&](auto& e) { on(e, out); }, event);
  return out;
}

// -- reports --------------------------------------------------------------------------------------

namespace {

/// Whether `losses` are those of `range`, in order.
bool covers(const std::vector<micro_batch_loss>& losses, index_range range) {
  if (losses.size() != range.size()) return false;
  for (std::uint32_t i = 0; i < range.size(); ++i)
    if (losses[i].micro_batch != range.begin + i) return false;
  return true;
}

bool covers(const std::vector<block_report>& reports, const block_runs& blocks) {
  return std::ranges::equal(reports, blocks.all(), {}, &block_report::block);
}

/// The micro-batches and validation micro-batches whose losses `replica` owes in `round`.
struct dues {
  index_range training;
  index_range validation;
};
dues dues_of(const coordinator_options& o, step_id round, replica_index replica) {
  dues d;
  if (round.value <= o.job.training.steps) d.training = o.shape.replicas[replica].micro_batches;
  if (validates_after(o.job, round.value - 1))
    d.validation = validation_share(o.job.validation.micro_batches, replica,
                                    static_cast<std::uint32_t>(o.shape.replicas.size()));
  return d;
}

}  // namespace

/// A peer's word that cannot be true ends the view: waiting for a better one would hang.
void coordinator_machine::give_up(node_id peer, const std::string& what, actions& out) {
  ended_ = true;
  out.push_back(tell_supervisor{trouble{options_.self, options_.view, peer,
                                        "node " + std::to_string(peer.value) + ", step " +
                                          std::to_string(round_.value) + ": " + what}});
}

void coordinator_machine::on(const stage_report& report, actions& out) {
  if (report.view != options_.view || report.step != round_) return;
  if (report.at.replica != options_.replica || report.at.stage >= stages_.size()) return;
  auto& at = options_.shape.replicas[options_.replica].stages[report.at.stage];
  if (at.node != report.from.node) return;
  bool last = report.at.stage + 1 == stages_.size();
  auto due = last ? dues_of(options_, round_, options_.replica) : dues{};
  if (!covers(report.blocks, at.blocks) || !covers(report.losses, due.training) ||
      !covers(report.validation_losses, due.validation))
    return give_up(report.from.node, "its report does not fit its stage", out);
  stages_[report.at.stage] = report;
  if (std::ranges::all_of(stages_, [](auto& s) { return s.has_value(); })) join(out);
}

void coordinator_machine::join(actions& out) {
  replica_report joint;
  joint.from = options_.self;
  joint.view = options_.view;
  joint.step = round_;
  joint.replica = options_.replica;
  for (auto& s : stages_) {
    joint.blocks.insert(joint.blocks.end(), s->blocks.begin(), s->blocks.end());
    if (s->offence)
      joint.offence = joint.offence ? std::min(*joint.offence, *s->offence) : s->offence;
    joint.links.push_back(s->links);
  }
  std::ranges::sort(joint.blocks, {}, &block_report::block);  // chunks lie between one another
  joint.losses = stages_.back()->losses;
  joint.validation_losses = stages_.back()->validation_losses;
  if (leads())
    on(joint, out);
  else
    out.push_back(tell_coordinator{options_.shape.replicas[0].stages[0].node, std::move(joint)});
}

void coordinator_machine::on(const replica_report& report, actions& out) {
  if (!leads() || report.view != options_.view || report.step != round_) return;
  if (report.replica >= replicas_.size()) return;
  auto& chain = options_.shape.replicas[report.replica];
  if (chain.stages[0].node != report.from.node) return;
  auto due = dues_of(options_, round_, report.replica);
  if (!covers(report.blocks, block_runs(0, block_count_of(chain))) ||
      !covers(report.losses, due.training) || !covers(report.validation_losses, due.validation) ||
      report.links.size() > chain.stages.size())
    return give_up(report.from.node, "its report does not fit its replica", out);
  replicas_[report.replica] = report;
  if (std::ranges::all_of(replicas_, [](auto& r) { return r.has_value(); })) lead(out);
}

// -- the lead -------------------------------------------------------------------------------------

bool coordinator_machine::agree(actions& out) {
  for (block_index block = 0; block < replicas_[0]->blocks.size(); ++block) {
    std::vector<ballot> ballots;
    for (replica_index r = 0; r < replicas_.size(); ++r)
      for (auto& s : options_.shape.replicas[r].stages)
        if (s.blocks.contains(block))
          ballots.push_back({s.node, replicas_[r]->blocks[block].digest});
    auto odd = outvoted(ballots);
    if (odd.empty()) continue;
    ended_ = true;
    out.push_back(tell_supervisor{
      diverged{options_.self, options_.view, round_.before(), block, std::move(odd)}});
    return false;
  }
  return true;
}

decided coordinator_machine::sum_up() const {
  round_facts facts;
  facts.step = round_;
  decided d;
  std::vector<double> validation;
  std::vector<link_figures> links;
  for (auto& r : replicas_) {
    links.insert(links.end(), r->links.begin(), r->links.end());
    for (auto& l : r->losses) facts.losses.push_back(l.loss.value());
    for (auto& l : r->validation_losses) validation.push_back(l.loss.value());
    if (r->offence)
      facts.offence = facts.offence ? std::min(*facts.offence, *r->offence) : r->offence;
  }
  std::vector<std::uint64_t> digests;
  auto count = static_cast<std::uint32_t>(replicas_.size());
  d.blocks = replicas_[0]->blocks;
  for (std::size_t b = 0; b < d.blocks.size(); ++b) {
    digests.push_back(d.blocks[b].digest);
    facts.squared_norms.push_back(d.blocks[b].squared_norm.value());
    std::uint64_t forward = 0, backward = 0;
    for (auto& r : replicas_) {
      forward += r->blocks[b].forward_us;
      backward += r->blocks[b].backward_us;
    }
    d.blocks[b].forward_us = static_cast<std::uint32_t>(forward / count);
    d.blocks[b].backward_us = static_cast<std::uint32_t>(backward / count);
  }
  auto made = judge(options_.job, facts);
  d.from = options_.self;
  d.what = made.what;
  d.what.view = options_.view;
  d.what.last_of_view =
    draining_ || made.what.what == decision::finish || made.what.what == decision::abort;
  d.offence = made.offence;
  d.links = median_of(links);
  d.digest_before = model_digest(digests);
  if (!validation.empty()) d.validation_loss = f64(validation_mean(validation));
  d.what.digest_before = d.digest_before;
  d.what.validation_loss = d.validation_loss;
  return d;
}

/// All sums of all replicas are complete: only now, so that whoever survives can follow.
void coordinator_machine::lead(actions& out) {
  if (!agree(out)) return;
  auto d = sum_up();
  for (replica_index r = 1; r < options_.shape.replicas.size(); ++r)
    out.push_back(tell_coordinator{options_.shape.replicas[r].stages[0].node, d.what});
  pass_on(d.what, out);
  out.emplace_back(std::in_place_type<tell_supervisor>, std::move(d));
}

void coordinator_machine::on(const verdict& word, actions& out) {
  if (leads() || word.view != options_.view || word.step != round_) return;
  pass_on(word, out);
}

void coordinator_machine::pass_on(const verdict& word, actions& out) {
  for (auto& s : options_.shape.replicas[options_.replica].stages)
    out.push_back(tell_stage{s.node, word});
  round_ = round_.next();
  ended_ = word.last_of_view;
  for (auto& s : stages_) s.reset();
  for (auto& r : replicas_) r.reset();
}

void coordinator_machine::on(const drain& order, actions&) {
  if (leads() && order.view == options_.view) draining_ = true;
}

}  // namespace shoal::core
