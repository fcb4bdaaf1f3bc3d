#include "sim/sim_supervisor.hpp"

#include "core/membership/failure_detector.hpp"
#include "sim/sim_node.hpp"

namespace shoal::sim {

using namespace core;

namespace {

supervisor_options options_for(world& w) {
  supervisor_options o;
  o.job = w.job;
  o.job_text = "job";
  o.job_digest = 77;
  o.profile = profile_of(w.draw.block_count);
  o.ledger = w.ledger;
  o.plan = w.plan;
  o.recover = w.options.broken.recover;
  return o;
}

}  // namespace

sim_supervisor::sim_supervisor(world& w) : process(w.loop), world_(w), machine_(options_for(w)) {}

void sim_supervisor::start() {
  world_.note("supervisor starts", world_.ledger.term.value + 1);
  handle(checkpoints_found{world_.checkpoints.steps()});
  tick();
}

void sim_supervisor::tick() {
  carry_out(machine_.tick(loop().now()));
  later(heartbeat_interval(world_.job.timeouts), [this] { tick(); });
}

void sim_supervisor::crash() {
  if (!alive()) return;
  world_.note("supervisor crashes");
  ++world_.outcome.supervisor_crashes;
  die();
  for (auto [a, b] : world_.net.cuts())
    if (a == 0) world_.net.heal(a, b);  // see checker.hpp, 4
  for (auto& c : accepted_)
    if (c->supervisor_open) close(c);
}

void sim_supervisor::close(const std::shared_ptr<connection>& c) {
  c->supervisor_open = false;
  world_.net.send(0, c->place, [this, c] { world_.node(c->place).lost(c); });
}

void sim_supervisor::hear(const std::shared_ptr<connection>& c, const node_message& message) {
  if (c->lost || !c->supervisor_open) return;
  if (!c->link) {
    c->link = next_link_;
    next_link_ = next_link_.next();
    links_[c->link] = c;
  }
  handle(heard{c->link, message});
}

void sim_supervisor::lost(const std::shared_ptr<connection>& c) {
  if (!c->supervisor_open) return;
  c->supervisor_open = false;
  if (!c->link) return;
  links_.erase(c->link);
  world_.note("link lost", c->link.value, static_cast<std::uint64_t>(c->place));
  handle(link_lost{c->link, "the connection ended"});
}

void sim_supervisor::ask_to_leave(node_id node) { handle(leave_asked{node}); }

void sim_supervisor::handle(const supervisor_event& event) {
  carry_out(machine_.step(loop().now(), event));
}

void sim_supervisor::carry_out(const std::vector<supervisor_action>& actions) {
  inspect(actions);
  for (auto& action : actions) {
    if (!alive()) return;
    if (auto a = std::get_if<send>(&action)) {
      auto c = links_.find(a->to);
      if (c == links_.end()) continue;
      world_.note("S tells", a->what.index(), static_cast<std::uint64_t>(c->second->place));
      world_.net.send(0, c->second->place, [this, c = c->second, what = a->what] {
        world_.node(c->place).hear(c, what);
      });
    } else if (auto p = std::get_if<persist>(&action)) {
      world_.ledger = p->what;
      if (doomed_) crash();
    } else if (auto d = std::get_if<drop_link>(&action)) {
      if (auto c = links_.find(d->link); c != links_.end()) {
        close(c->second);
        links_.erase(c);
      }
    } else if (auto r = std::get_if<report>(&action)) {
      world_.comment("S: " + r->text);
      if (r->text.starts_with("adopted")) ++world_.outcome.adoptions;
    } else if (auto s = std::get_if<step_done>(&action)) {
      ++world_.outcome.steps;
      world_.note("step done", s->what.what.step.value, s->what.what.view.value);
      world_.check.reported(s->what);
    } else if (auto f = std::get_if<finished>(&action)) {
      world_.note("finished", f->failure ? 1 + static_cast<std::uint64_t>(*f->failure) : 0);
      world_.finished = true;
      if (f->failure) world_.check.fail("the job ended with a failure: " + f->reason);
    }
  }
}

/// The checks that need to see prepare and commit as a whole.
void sim_supervisor::inspect(const std::vector<supervisor_action>& actions) {
  std::vector<holding> taking_part;
  view_id preparing, committing;
  for (auto& action : actions) {
    auto a = std::get_if<send>(&action);
    if (a == nullptr) continue;
    auto c = links_.find(a->to);
    if (auto p = std::get_if<prepare>(&a->what)) {
      preparing = p->view;
      meet_ = p->step;
      if (c != links_.end()) taking_part.push_back(world_.node(c->second->place).state());
      bool restored = p->checkpoint == p->step || p->step.value == 0;
      for (auto& m : p->missing)
        if (restored && m.holders.empty() && p->view != inspected_prepare_) {
          ++world_.outcome.rollbacks;
          break;
        }
      if (p->roll_forward) ++world_.outcome.roll_forwards;
    }
    if (auto m = std::get_if<commit>(&a->what)) committing = m->view;
  }
  if (preparing && preparing != std::exchange(inspected_prepare_, preparing))
    world_.check.meets(preparing, meet_, taking_part);
  if (!committing || committing == std::exchange(inspected_commit_, committing)) return;
  ++world_.outcome.morphs;
  const ledger_state* state = &world_.ledger;
  for (auto& action : actions)
    if (auto p = std::get_if<persist>(&action)) state = &p->what;
  std::map<node_id, holding> members;
  for (auto& n : world_.nodes)
    if (n->alive() && n->id()) members[n->id()] = n->state();
  world_.check.committed(committing, meet_, state->shape, members);
}

}  // namespace shoal::sim
