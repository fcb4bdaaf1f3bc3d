#pragma once
// One round of one stage: its schedule's actions in order, one block at a time, and the sums.
//
//   action F3 of a chunk with blocks 2..4:   input frames -> [2] -> [3] -> [4] -> frames to the
//   next
//                                            `work()`        once   once   once
//
// An action begins when its input frames are here. While it waits, and between actions, the reducer
// gets its turn; in an opportunistic order, so does the next forward pass that need not wait.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/job.hpp"
#include "core/ports.hpp"
#include "core/schedule/schedule.hpp"
#include "torch/runner/batches.hpp"
#include "torch/runner/holdings.hpp"
#include "torch/runner/inbox.hpp"
#include "torch/runner/reducer.hpp"
#include "torch/runner/stage_facts.hpp"

namespace shoal::engine {

/// Owned by the trainer's thread; all referred to must outlive it. Dropping it ends the round and
/// leaves parameters and complete totals as they are.
class round {
public:
  /// The frames of the round must be expected already.
  round(const stage_facts& facts, const batches& data, holdings& blocks, inbox& in,
        core::tensor_plane& plane, step_id number);

  step_id number() const { return number_; }
  /// Does one unit of work; false when there is none until a frame comes. Throws what torch throws,
  /// and batches_error.
  bool work();
  /// Everything that the report says is known.
  bool complete() const;
  std::uint32_t actions_done() const { return actions_done_; }
  /// What is being computed: `step 3, micro-batch 2, block "h.1"`.
  std::string where() const;
  /// Of a complete round, but for `from`.
  core::stage_report report() const;

private:
  /// What is kept of a micro-batch between its forward and backward pass.
  struct stash {
    tensors inputs;                       // of the chunk, when it recomputes
    std::optional<micro_batch> data;      // likewise
    std::vector<forward_record> records;  // by block
  };
  /// The action in progress.
  struct running {
    std::size_t number;  // among the actions
    core::stage_action what;
    block_index block = 0;  // whose turn it is
    tensors boundary;       // what goes into it
    std::optional<micro_batch> data;
  };
  struct timing {
    std::chrono::nanoseconds forward{}, backward{};
    std::uint32_t forward_count = 0, backward_count = 0;
  };

  bool begin_action();
  bool begin_forward_ahead();
  bool begin(std::size_t number);
  bool gradient_is_here(core::stage_action what) const;
  bool has_boundary(core::frame_kind kind, block_index block, micro_batch_index g,
                    const std::vector<tensor_spec>& specs, bool only_floating) const;
  bool take_boundary(core::frame_kind kind, block_index block, micro_batch_index g,
                     const std::vector<tensor_spec>& specs, bool only_floating);
  /// That the action in progress belongs to.
  const chunk& part() const { return facts_.chunks()[now_->what.chunk]; }
  using stash_key = std::pair<std::uint32_t, micro_batch_index>;  // chunk first
  static stash_key key_of(core::stage_action what) { return {what.chunk, what.micro_batch}; }
  stash& stash_of(core::stage_action what) { return stashes_.at(key_of(what)); }
  void run_block();
  void validate_block();
  void forward_block();
  void backward_block();
  void end_action();
  void end_forward();
  void send_boundary(node_id to, core::frame_kind kind, block_index block, micro_batch_index g);
  void check_finite(const tensors& outputs, micro_batch_index g, block_index block);
  const micro_batch* data_for(block_index block) const;
  bool keeps_records() const;
  double take_loss();

  const stage_facts& facts_;
  const batches& data_;
  holdings& held_;
  inbox& inbox_;
  core::tensor_plane& plane_;
  step_id number_;
  reducer reducer_;
  stage_facts::orders orders_;
  std::vector<bool> done_;   // by action
  std::size_t head_ = 0;     // no action before it is open
  std::size_t forward_ = 0;  // nor a forward pass before this
  std::uint32_t actions_done_ = 0;
  std::uint32_t in_flight_ = 0;  // forward passes without their backward pass
  std::optional<running> now_;
  std::map<stash_key, stash> stashes_;
  std::map<block_index, timing> timings_;
  std::vector<core::micro_batch_loss> losses_, validation_losses_;
  std::optional<core::not_finite> offence_;
};

}  // namespace shoal::engine
