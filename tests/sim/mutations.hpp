#pragma once
// Deliberate bugs, put into the core from outside, through the simulator's seams. Each is one that
// a tired programmer could write; the simulator has to find every one.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "core/schedule/schedule.hpp"
#include "sim/cluster.hpp"

namespace shoal::sim {

struct mutation {
  std::string name;
  std::function<hooks()> make;  // fresh for each seed
};

/// Everyone meets at the oldest step that is held completely, not at the newest.
inline hooks meets_at_minimum() {
  hooks h;
  h.recover = [](const core::recovery_input& input) {
    auto cautious = input;
    for (auto& s : cautious.standings) {  // nobody rolls forward
      s.has_sums = false;
      s.last_verdict.reset();
    }
    core::recovery_line oldest = core::find_recovery_line(cautious);
    for (auto& s : input.standings) {
      auto without = cautious;
      std::erase_if(without.standings, [&](auto& other) { return other.applied > s.applied; });
      auto line = core::find_recovery_line(without);
      if (!s.blocks.empty() && line.meet < oldest.meet) oldest = line;
    }
    return oldest;
  };
  return h;
}

/// A node that trains takes no notice of a higher view, but says where it stands.
inline hooks ignores_higher_views() {
  hooks h;
  h.member_events = [](const core::member_machine& m, const core::member_event& e) {
    auto from = std::get_if<core::from_supervisor>(&e);
    auto order = from == nullptr ? nullptr : std::get_if<core::halt>(&from->what);
    if (order == nullptr || m.doing() != core::activity::training) return std::vector{e};
    auto harmless = *order;
    harmless.view = m.view();
    return std::vector<core::member_event>{core::from_supervisor{harmless}};
  };
  return h;
}

/// The lead decides with its own replica's report, and takes the others' for granted.
inline hooks decides_too_early() {
  hooks h;
  h.coordinator_events = [](const core::coordinator_options& o, const core::coordinator_event& e) {
    std::vector<core::coordinator_event> events{e};
    auto own = std::get_if<core::stage_report>(&e);
    if (o.replica != 0 || own == nullptr || own->step.value > o.job.training.steps) return events;
    if (o.shape.replicas[0].stages.size() != 1) return events;
    auto count = static_cast<std::uint32_t>(o.shape.replicas.size());
    for (replica_index r = 1; r < count; ++r) {
      core::replica_report forged;
      forged.from = {o.shape.replicas[r].stages[0].node, {1}};
      forged.view = own->view;
      forged.step = own->step;
      forged.replica = r;
      forged.blocks = own->blocks;  // a replica has the same sums as the others, has it not?
      auto range = o.shape.replicas[r].micro_batches;
      for (auto g = range.begin; g < range.end; ++g)
        forged.losses.push_back({g, own->losses.empty() ? f64{} : own->losses.front().loss});
      if (core::validates_after(o.job, own->step.value - 1)) {
        auto share = core::validation_share(o.job.validation.micro_batches, r, count);
        for (auto g = share.begin; g < share.end; ++g) forged.validation_losses.push_back({g, 1.0});
      }
      events.insert(events.begin(), forged);
    }
    return events;
  };
  return h;
}

/// Whoever is one step behind is believed to have the sums of the decided round.
inline hooks takes_sums_for_granted() {
  hooks h;
  h.recover = [](const core::recovery_input& input) {
    auto trusting = input;
    for (auto& s : trusting.standings) s.has_sums = true;
    return core::find_recovery_line(trusting);
  };
  return h;
}

inline std::vector<mutation> all_mutations() {
  return {{"recovery meets at the minimum", meets_at_minimum},
          {"a member ignores higher views", ignores_higher_views},
          {"a lead decides before all replicas have reported", decides_too_early},
          {"recovery takes sums for granted", takes_sums_for_granted}};
}

}  // namespace shoal::sim
