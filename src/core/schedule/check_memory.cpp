// Rule 6, second half: what is alive at every cell, in micro-batches and in bytes.
//
//   input      from its receive (F where nothing is received) to the last of B, W
//   stash      from F, or from R where there is one, to the last of B, W
//   gradient   from its receive (B or I where nothing is received) to the last of B, W
//   output     from F to its send, input gradient from B or I to its send
#include <algorithm>

#include "core/schedule/breach.hpp"
#include "core/schedule/checks.hpp"
#include "core/schedule/text.hpp"

namespace shoal::core::checks {

namespace {

class sweep {
public:
  sweep(const subject& s, rank_index r) : s_(s), r_(r) {
    if (!counts_bytes()) return;
    for (auto stage : stages_of(s.plan, r))
      now_ += s.limits.memory[stage].weights + s.limits.memory[stage].fixed;
    peak_ = now_;
  }

  rank_figures run(rank_figures figures) {
    bool backward = false;
    std::uint32_t live = 0;
    auto& order = s_.plan.ranks[r_];
    for (std::size_t i = 0; i < order.size(); ++i) {
      auto& c = order[i];
      backward |= c.what == operation::backward || c.what == operation::input_gradient;
      if (c.what == operation::forward) {
        figures.live_peak = std::max(figures.live_peak, ++live);
        figures.warm_up += !backward;
      }
      if (counts_bytes()) begin(c, i);
      if (finishes(c)) --live;
      if (counts_bytes()) end(c);
    }
    figures.bytes_peak = peak_;
    return figures;
  }

  std::size_t peak_place() const { return peak_place_; }

private:
  bool counts_bytes() const { return !s_.limits.memory.empty(); }
  const stage_memory& bytes(virtual_stage s) const { return s_.limits.memory[s]; }

  bool has(operation what, const cell& c) const {
    return s_.index.find(what, c.stage, c.micro_batch) != no_cell;
  }
  bool has_next(const cell& c) const { return c.stage + 1 < s_.plan.stage_count(); }

  /// What comes to life with a cell, seen while it runs.
  void begin(const cell& c, std::size_t i) {
    auto& b = bytes(c.stage);
    bool is_backward = c.what == operation::backward || c.what == operation::input_gradient;
    if (c.what == operation::receive_activation) now_ += b.input;
    if (c.what == operation::receive_gradient) now_ += b.gradient;
    if (c.what == operation::forward) {
      if (!has(operation::receive_activation, c)) now_ += b.input;
      if (!has(operation::recompute, c)) now_ += b.stash;
      if (has(operation::send_activation, c)) now_ += bytes(c.stage + 1).input;
    }
    if (c.what == operation::recompute) now_ += b.stash;
    if (is_backward) {
      if (has_next(c) && !has(operation::receive_gradient, c)) now_ += b.gradient;
      if (has(operation::send_gradient, c)) now_ += bytes(c.stage - 1).gradient;
    }
    if (c.what == operation::optimize && c.version != none) now_ += b.weights;
    if (now_ > peak_) peak_ = now_, peak_place_ = i;
  }

  /// What a cell sets free.
  void end(const cell& c) {
    auto& b = bytes(c.stage);
    if (c.what == operation::send_activation) now_ -= bytes(c.stage + 1).input;
    if (c.what == operation::send_gradient) now_ -= bytes(c.stage - 1).gradient;
    if (c.what == operation::drop_version) now_ -= b.weights;
    if (finishes(c)) now_ -= b.input + b.stash + (has_next(c) ? b.gradient : 0);
  }

  const subject& s_;
  rank_index r_;
  std::uint64_t now_ = 0, peak_ = 0;
  std::size_t peak_place_ = 0;
};

}  // namespace

result<void> memory(const subject& s, std::vector<rank_figures>& figures) {
  for (rank_index r = 0; r < s.plan.rank_count(); ++r) {
    sweep walk(s, r);
    figures[r] = walk.run(figures[r]);
    if (figures[r].live_peak > s.plan.policy.live_max)
      return breach(rule::memory,
                    "rank " + std::to_string(r) + " holds " + std::to_string(figures[r].live_peak) +
                      " micro-batches in the order that is written; the nearest legal "
                      "live_max is that, not " +
                      std::to_string(s.plan.policy.live_max));
    if (s.limits.budgets.empty() || figures[r].bytes_peak <= s.limits.budgets[r]) continue;
    auto& order = s.plan.ranks[r];
    auto where = order.empty() ? "rank " + std::to_string(r)
                               : place_of(r, walk.peak_place(), order[walk.peak_place()]);
    return error{errc::no_memory, name_of(rule::memory) + ", " + where + ": " +
                                    std::to_string(figures[r].bytes_peak) + " bytes are live, " +
                                    std::to_string(figures[r].bytes_peak - s.limits.budgets[r]) +
                                    " more than the budget of " +
                                    std::to_string(s.limits.budgets[r]) + "."};
  }
  return {};
}

}  // namespace shoal::core::checks
