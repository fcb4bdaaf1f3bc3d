// Rule 9: the layout may change at a MORPH_OK: nothing is under way there, on any rank.
#include <algorithm>

#include "core/schedule/breach.hpp"
#include "core/schedule/checks.hpp"
#include "core/schedule/text.hpp"

namespace shoal::core::checks {

namespace {

/// What is under way on a rank.
struct open_work {
  std::uint32_t passes = 0;     ///< forwarded and not finished
  std::uint32_t received = 0;   ///< received and not used
  std::uint32_t unsent = 0;     ///< made for another rank and not sent
  std::uint32_t gradients = 0;  ///< finished and not in an update
  std::uint32_t versions = 0;   ///< of weights, beside the newest of each stage

  std::string text() const {
    if (passes > 0) return std::to_string(passes) + " micro-batches have no backward pass yet";
    if (received > 0) return std::to_string(received) + " messages are received and not used";
    if (unsent > 0) return std::to_string(unsent) + " results are not sent yet";
    if (gradients > 0) return std::to_string(gradients) + " gradients are not in an update yet";
    if (versions > 0) return std::to_string(versions) + " older versions of weights are alive";
    return "";
  }
};

void note(const subject& s, const cell& c, bool has_updates, open_work& open) {
  auto has = [&](operation what) { return s.index.find(what, c.stage, c.micro_batch) != no_cell; };
  bool backward = c.what == operation::backward || c.what == operation::input_gradient;
  if (c.what == operation::forward) {
    ++open.passes;
    open.received -= has(operation::receive_activation);
    open.unsent += has(operation::send_activation);
  }
  if (backward) {
    open.received -= has(operation::receive_gradient);
    open.unsent += has(operation::send_gradient);
  }
  if (finishes(c)) {
    --open.passes;
    open.gradients += has_updates;
  }
  if (is_receive(c.what)) ++open.received;
  if (is_send(c.what)) --open.unsent;
  if (c.what == operation::optimize && c.version != none) ++open.versions;
  if (c.what == operation::drop_version) --open.versions;
}

}  // namespace

result<void> morphing(const subject& s) {
  bool has_updates = false;
  for (auto& order : s.plan.ranks)
    for (auto& c : order) has_updates |= c.what == operation::optimize;
  std::vector<std::uint32_t> epoch(s.plan.micro_batches, none);
  std::uint32_t points = none;
  for (rank_index r = 0; r < s.plan.rank_count(); ++r) {
    open_work open;
    std::vector<std::uint32_t> gradients(s.plan.stage_count(), 0);
    std::uint32_t passed = 0;
    for (std::size_t i = 0; i < s.plan.ranks[r].size(); ++i) {
      auto& c = s.plan.ranks[r][i];
      note(s, c, has_updates, open);
      gradients[c.stage] += finishes(c) && has_updates;
      if (c.what == operation::optimize) {
        open.gradients -= gradients[c.stage];
        gradients[c.stage] = 0;
      }
      if (c.what == operation::forward) {
        auto& at = epoch[c.micro_batch];
        if (at == none) at = passed;
        if (at != passed)
          return breach(rule::morphing, r, i, c,
                        "it comes after " + std::to_string(passed) +
                          " morph points here, and after " + std::to_string(at) + " elsewhere");
      }
      if (c.what != operation::morph_point) continue;
      if (auto text = open.text(); !text.empty())
        return breach(rule::morphing, r, i, c,
                      text + "; the nearest legal place is after they are done");
      ++passed;
    }
    if (s.plan.ranks[r].empty()) continue;
    if (points == none) points = passed;
    if (points != passed)
      return breach(rule::morphing, "rank " + std::to_string(r) + " has " + std::to_string(passed) +
                                      " morph points, a rank before it has " +
                                      std::to_string(points) + "; all must have as many");
  }
  return {};
}

}  // namespace shoal::core::checks
