// Zero-bubble schedules: B is split into I (gradient of the input, which the stage before waits
// for) and W (gradient of the weights, which nobody waits for), and W fills the gaps.
//
//   ZB-H1, p=3, rank 0:  F0 F1 F2 I0 W0 F3 I1 W1 ...      rank 2:  F0 I0 F1 I1 F2 I2 W0 ...
//
//   Qi et al., "Zero Bubble Pipeline Parallelism" (arXiv 2401.10241): H1 keeps the memory of 1F1B
//   (W lags by the rank), H2 runs twice as far ahead, ZB-V does so with two chunks in V placement,
//   the first and the last stage on rank 0. ZB-V's order is the one of torch's ZBVZeroBubble: the
//   order for F = I = W.

#include <algorithm>
#include <string>

#include "core/schedule/families.hpp"

namespace shoal::core::families {

namespace {

/// Appends cells of one stage in order of micro-batch, each as long as there are micro-batches.
class stage_cells {
public:
  stage_cells(pipeline_plan& plan, rank_index r, virtual_stage s, bool recompute)
    : plan_(plan), rank_(r), stage_(s), recompute_(recompute && s + 1 < plan.stage_count()) {}

  bool forward() { return append(operation::forward, forwards_); }
  bool input_gradient() {
    if (recompute_ && inputs_ < plan_.micro_batches)
      plan_.ranks[rank_].push_back({operation::recompute, stage_, inputs_});
    return append(operation::input_gradient, inputs_);
  }
  /// One W, if an I has come that has none yet.
  bool weight_gradient() {
    return weights_ < inputs_ && append(operation::weight_gradient, weights_);
  }
  std::uint32_t forwards() const { return forwards_; }
  std::uint32_t inputs() const { return inputs_; }

private:
  bool append(operation what, std::uint32_t& next) {
    if (next == plan_.micro_batches) return false;
    plan_.ranks[rank_].push_back({what, stage_, next++});
    return true;
  }

  pipeline_plan& plan_;
  rank_index rank_;
  virtual_stage stage_;
  bool recompute_;
  std::uint32_t forwards_ = 0, inputs_ = 0, weights_ = 0;
};

/// ZB-V of one rank; chunk 0 is stage r, chunk 1 stage 2p-1-r.
void zero_bubble_v_rank(pipeline_plan& plan, rank_index r, bool recompute) {
  auto p = plan.rank_count();
  stage_cells down(plan, r, r, recompute), up(plan, r, 2 * p - 1 - r, recompute);
  for (std::uint32_t k = 0; k < 2 * (p - r) - 1; ++k) down.forward();
  for (std::uint32_t k = 0; k < r; ++k) {
    up.forward();
    down.forward();
  }
  for (std::uint32_t k = 0; k < p - r; ++k) {
    up.forward();
    up.input_gradient();
    up.weight_gradient();
  }
  while (up.forwards() < plan.micro_batches) {
    down.forward();
    down.input_gradient();
    down.weight_gradient();
    up.forward();
    up.input_gradient();
    up.weight_gradient();
  }
  for (std::uint32_t k = 0; k < r; ++k) {
    down.input_gradient();
    up.input_gradient();
  }
  while (down.input_gradient()) down.weight_gradient();
  while (up.weight_gradient()) {
  }
  while (down.weight_gradient()) {
  }
}

}  // namespace

result<pipeline_plan> zero_bubble_h(const plan_options& options) {
  auto plan = empty_plan(options);
  auto p = options.ranks;
  bool twice = options.name == "zb-h2";
  plan.placement = {linear_placement(p)};
  for (rank_index r = 0; r < p; ++r) {
    stage_cells cells(plan, r, r, options.recompute);
    auto warm_up = twice ? 2 * (p - r) - 1 : p - 1 - r;
    auto lag = twice ? 2 * r : r;
    for (std::uint32_t k = 0; k < warm_up; ++k) cells.forward();
    while (cells.inputs() < options.micro_batches) {
      if (!twice) cells.forward();
      cells.input_gradient();
      if (cells.inputs() > lag) cells.weight_gradient();
      if (twice) cells.forward();
    }
    while (cells.weight_gradient()) {
    }
  }
  return plan;
}

result<pipeline_plan> zero_bubble_v(const plan_options& options) {
  auto plan = empty_plan(options);
  plan.placement = {v_placement(options.ranks)};
  // The order is made for at least 2p-1 micro-batches, and what is not there is left out.
  auto count = plan.micro_batches;
  plan.micro_batches = std::max(count, 2 * options.ranks - 1);
  for (rank_index r = 0; r < options.ranks; ++r) {
    zero_bubble_v_rank(plan, r, options.recompute);
    std::erase_if(plan.ranks[r], [&](const cell& c) { return c.micro_batch >= count; });
  }
  plan.micro_batches = count;
  return plan;
}

}  // namespace shoal::core::families
