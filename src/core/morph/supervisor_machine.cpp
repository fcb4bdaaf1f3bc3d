#include "core/morph/supervisor_machine.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "core/morph/supervisor_impl.hpp"

namespace shoal::core {

std::string_view to_string(job_state state) {
  switch (state) {
    case job_state::gathering:
      return "gathering";
    case job_state::adopting:
      return "adopting";
    case job_state::halting:
      return "halting";
    case job_state::holding:
      return "holding";
    case job_state::preparing:
      return "preparing";
    case job_state::running:
      return "running";
    case job_state::draining:
      return "draining";
    case job_state::finishing:
      return "finishing";
    case job_state::done:
      return "done";
  }
  return "unknown";
}

supervisor_machine::supervisor_machine(supervisor_options options)
  : impl_(std::make_unique<impl>(std::move(options))) {}
supervisor_machine::~supervisor_machine() = default;
supervisor_machine::supervisor_machine(supervisor_machine&&) noexcept = default;

std::vector<supervisor_action> supervisor_machine::step(time_point now,
                                                        const supervisor_event& event) {
  return impl_->step(now, event);
}

std::vector<supervisor_action> supervisor_machine::tick(time_point now) { return impl_->tick(now); }

supervisor_status supervisor_machine::status() const { return impl_->status(); }

// -- impl -----------------------------------------------------------------------------------------

supervisor_machine::impl::impl(supervisor_options options)
  : options_(std::move(options)),
    job_(options_.job),
    profile_(options_.profile),
    ledger_(options_.ledger),
    detector_({.failure = job_.timeouts.failure,
               .interval = heartbeat_interval(job_.timeouts),
               .progress = job_.timeouts.answer}) {
  if (!options_.plan) options_.plan = core::plan;
  if (!options_.recover) options_.recover = find_recovery_line;
  SHOAL_ASSERT(!profile_.blocks.empty());
}

std::vector<supervisor_action> supervisor_machine::impl::step(time_point now,
                                                              const supervisor_event& event) {
  now_ = now;
  SHOAL_ASSERT(started_ || std::holds_alternative<checkpoints_found>(event));
  if (state_ != job_state::done || std::holds_alternative<heard>(event))
    std::visit([&](auto& e) { on(e); }, event);
  return std::exchange(out_, {});
}

std::vector<supervisor_action> supervisor_machine::impl::tick(time_point now) {
  now_ = now;
  if (!started_ || state_ == job_state::done) return {};
  watch();
  switch (state_) {
    case job_state::gathering:
      start_when_enough();
      break;
    case job_state::adopting:
      adopt_when_whole();
      break;
    case job_state::halting:
      go_on_when_answered();
      break;
    case job_state::holding:
      resume_when_safe();
      break;
    case job_state::preparing:
      if (now_ >= next_->until) {
        std::string late;
        for (auto node : next_->awaited) late += " " + std::to_string(node.value);
        begin_halting("not ready within timeouts.prepare: node" + late, false);
      }
      break;
    case job_state::running:
      reconsider();
      break;
    case job_state::finishing:
      if (now_ >= finish_until_) try_last_checkpoint_again("it did not come in time");
      break;
    default:
      break;
  }
  return std::exchange(out_, {});
}

supervisor_status supervisor_machine::impl::status() const {
  supervisor_status s;
  s.state = state_;
  s.term = ledger_.term;
  s.view = view_;
  s.shape = state_ == job_state::preparing ? next_->shape : ledger_.shape;
  s.step = reached_;
  s.loss = loss_;
  s.morphs = morphs_;
  s.link_bytes_per_s = profile_.link_bytes_per_s;
  s.link_latency = profile_.link_latency;
  for (auto& [id, node] : roster_.all()) {
    node_status n;
    n.who = node.who;
    n.at = node.at;
    n.process = node.process;
    n.alive = node.alive;
    n.leaving = node.leaving;
    n.suspect = node.suspect;
    n.stuck = node.stuck;
    n.doing = node.beat.doing;
    n.view = node.beat.view;
    n.step = node.beat.step;
    n.micro_batch = node.beat.micro_batch;
    n.resident_bytes = node.beat.resident_bytes;
    s.nodes.push_back(std::move(n));
  }
  s.checkpoints = checkpoints_;
  bool waits = state_ == job_state::holding || state_ == job_state::gathering;
  s.reason = waits ? hold_reason_ : plan_reason_;
  return s;
}

void supervisor_machine::impl::say(report_kind kind, std::string text, node_id node) {
  act(report{kind, std::move(text), node, {}});
}

void supervisor_machine::impl::tell(const roster_node& node, supervisor_message message) {
  if (node.link) act(send{node.link, std::move(message)});
}

bool supervisor_machine::impl::in_shape(node_id node) const {
  place at;
  return find_place(ledger_.shape, node, at);
}

bool supervisor_machine::impl::has_checkpoint(step_id step) const {
  return std::ranges::find(checkpoints_, step) != checkpoints_.end();
}

}  // namespace shoal::core
