// DualPipe: micro-batches enter from both ends, and a forward of one direction overlaps a backward
// of the other. DualPipeV: half the ranks, each with a stage of the way down and one of the way up.
//
//   rank 0 of 4 (DualPipeV, m=10):  0F0 .. 0F6 7F0  7I0 7W0 7F1 ..  (0F7;7B3) (7F4;0B0) ..  7B9 ..
//
//   Eight steps of deepseek-ai/DualPipe (DeepSeek-V3, arXiv 2412.19437, section 3.2.1); phase 0 is
//   the direction in which the rank is nearer to the input. W's wait in one queue, oldest first.
//   The middle rank leaves its first pair unoverlapped, which shortens the bubble.

#include <algorithm>
#include <deque>
#include <string>

#include "core/schedule/families.hpp"

namespace shoal::core::families {

namespace {

/// One rank of one of the two: which stage each phase is, and which micro-batch it begins with.
class dualpipe_rank {
public:
  dualpipe_rank(std::vector<cell>& order, virtual_stage stage0, virtual_stage stage1,
                micro_batch_index first0, micro_batch_index first1)
    : order_(order), phases_{{stage0, first0, first0}, {stage1, first1, first1}} {}

  void forward(int phase) { forward(phase, none); }
  void backward(int phase) { backward(phase, none); }
  /// F of `phase` beside B of the other.
  void both(int phase) {
    forward(phase, groups_);
    backward(1 - phase, groups_++);
  }
  /// Only the gradient of the input; W waits.
  void input_gradient(int phase) {
    auto& p = phases_[phase];
    order_.push_back({operation::input_gradient, p.stage, p.backward});
    waiting_.push_back({operation::weight_gradient, p.stage, p.backward++});
  }
  void weight_gradient() {
    order_.push_back(waiting_.front());
    waiting_.pop_front();
  }

private:
  struct phase_state {
    virtual_stage stage;
    micro_batch_index forward, backward;  // the next
  };

  void forward(int phase, std::uint32_t group) {
    auto& p = phases_[phase];
    order_.push_back({operation::forward, p.stage, p.forward++, none, group});
  }
  void backward(int phase, std::uint32_t group) {
    auto& p = phases_[phase];
    order_.push_back({operation::backward, p.stage, p.backward++, none, group});
  }

  std::vector<cell>& order_;
  phase_state phases_[2];
  std::deque<cell> waiting_;
  std::uint32_t groups_ = 0;
};

/// `half` ranks lie between the end and the middle, q of them before this one; `count`
/// micro-batches run in each phase.
void eight_steps(dualpipe_rank& rank, std::uint32_t half, std::uint32_t q, std::uint32_t count) {
  auto before_middle = half - q - 1;
  for (std::uint32_t i = 0; i < 2 * before_middle; ++i) rank.forward(0);
  for (std::uint32_t i = 0; i < q + 1; ++i) {
    rank.forward(0);
    rank.forward(1);
  }
  for (std::uint32_t i = 0; i < before_middle; ++i) {
    rank.input_gradient(1);
    rank.weight_gradient();
    rank.forward(1);
  }
  for (std::uint32_t i = 0; i < count - 2 * half + q + 1; ++i) {
    if (i == 0 && before_middle == 0) {
      rank.forward(0);
      rank.backward(1);
    } else {
      rank.both(0);
    }
    rank.both(1);
  }
  for (std::uint32_t i = 0; i < before_middle; ++i) {
    rank.backward(1);
    rank.both(1);
  }
  bool split = false;  // of the backward passes here, the second half
  auto one = [&](int phase) { split ? rank.input_gradient(phase) : rank.backward(phase); };
  for (std::uint32_t i = 0; i < q + 1; ++i) {
    if (i == (q + 1) / 2 && q % 2 == 1) split = true;
    one(1);
    if (i == (q + 1) / 2 && q % 2 == 0) split = true;
    one(0);
  }
  for (std::uint32_t i = 0; i < before_middle; ++i) {
    rank.weight_gradient();
    rank.input_gradient(0);
  }
  for (std::uint32_t i = 0; i < q + 1; ++i) rank.weight_gradient();
}

pipeline_plan v(const plan_options& options) {
  auto plan = empty_plan(options);
  auto p = options.ranks;
  plan.placement = {v_placement(p)};
  for (rank_index r = 0; r < p; ++r) {
    dualpipe_rank rank(plan.ranks[r], r, 2 * p - 1 - r, 0, 0);
    eight_steps(rank, p, r, options.micro_batches);
  }
  return plan;
}

pipeline_plan both_directions(const plan_options& options) {
  auto plan = empty_plan(options);
  auto p = options.ranks;
  auto count = options.micro_batches / 2;
  plan.placement = opposite_placement(p);
  plan.chain_of.assign(options.micro_batches, 0);
  std::fill(plan.chain_of.begin() + count, plan.chain_of.end(), 1);
  for (rank_index r = 0; r < p; ++r) {
    bool lower = r < p / 2;  // nearer to the input of chain 0
    auto down = r, up = p - 1 - r;
    dualpipe_rank rank(plan.ranks[r], lower ? down : up, lower ? up : down, lower ? 0 : count,
                       lower ? count : 0);
    eight_steps(rank, p / 2, std::min(down, up), count);
  }
  return plan;
}

}  // namespace

result<pipeline_plan> dualpipe(const plan_options& options) {
  bool is_v = options.name == "dualpipe-v";
  auto m = options.micro_batches, least = 2 * options.ranks;
  if (!is_v && options.ranks % 2 != 0)
    return illegal(options, "ranks", options.ranks, "both directions meet between two middle ranks",
                   options.ranks - 1, options.ranks + 1);
  if (m < least)
    return illegal(options, "micro-batches", m, "it needs two for each rank", 0, least);
  if (!is_v && m % 2 != 0)
    return illegal(options, "micro-batches", m, "each direction gets half of them", m - 1, m + 1);
  return is_v ? v(options) : both_directions(options);
}

}  // namespace shoal::core::families
