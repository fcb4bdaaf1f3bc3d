#pragma once
// The blocks that a node has in memory, all at one step.
//
//   round ends -> sums complete -> verdict -> apply -> applied() is one more, digests are new
//                       |
//                     halt: the sums stay, so that a later verdict can still be followed
//
// Parameters change in `apply` alone, so whatever ends a round leaves them as they were.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/messages.hpp"
#include "core/ports.hpp"
#include "torch/block_runtime.hpp"

namespace shoal::engine {

/// Owned by the trainer's thread.
class holdings {
public:
  step_id applied() const { return applied_; }
  bool has(block_index block) const { return blocks_.contains(block); }
  bool empty() const { return blocks_.empty(); }
  block_runtime& at(block_index block) { return *blocks_.at(block).runtime; }
  std::uint64_t digest(block_index block) const { return blocks_.at(block).digest; }

  /// Total gradients of round applied()+1, ties added, are there for all blocks.
  bool has_sums() const { return has_sums_; }
  void sums_complete() { has_sums_ = true; }
  /// Gives up what there is of a round, unless its sums are complete.
  void drop_unfinished_sums();
  void drop_sums();

  /// Takes a block in, at step applied(). The sums are not complete for it.
  void add(std::unique_ptr<block_runtime> block);
  /// Puts `copy`, which has the same values, in the place of a block that is held, sums and all.
  void replace(std::unique_ptr<block_runtime> copy);
  void drop(block_index block);
  /// Drops all blocks outside `kept`.
  void keep_only(const core::block_runs& kept);
  /// Drops everything and stands at `step`.
  void restart(step_id step);

  /// Does what the verdict on round applied()+1 says (apply or skip). has_sums() must hold when
  /// there are blocks. When this throws, blocks of different steps may be held: the caller
  /// restarts.
  void apply(const core::verdict& word);
  /// Of step applied(); others can roll forward with it.
  const std::optional<core::verdict>& last_verdict() const { return last_verdict_; }
  void set_last_verdict(const std::optional<core::verdict>& word) { last_verdict_ = word; }

  std::vector<core::held_block> list() const;
  core::standing standing() const;
  /// Copies of those blocks, to be written.
  std::vector<core::block_state> copies(const std::vector<block_index>& blocks) const;

private:
  struct held {
    std::unique_ptr<block_runtime> runtime;
    std::uint64_t digest = 0;
  };
  step_id applied_;
  bool has_sums_ = false;
  std::optional<core::verdict> last_verdict_;
  std::map<block_index, held> blocks_;
};

}  // namespace shoal::engine
