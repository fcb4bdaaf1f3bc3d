#pragma once
// The shared folder of checkpoints: what is whole, what is damaged.

#include <map>
#include <optional>
#include <vector>

#include "core/checkpoint/manifest.hpp"
#include "sim/checker.hpp"

namespace shoal::sim {

class disk {
public:
  disk(checker& check, std::uint32_t keep) : check_(check), keep_(keep) {}

  /// The manifest is written: the checkpoint exists. Older ones go, as the job says.
  void put(step_id step, const std::vector<core::checkpoint_part>& parts) {
    check_.saved(step, parts);
    auto& made = checkpoints_[step];
    made = {};
    for (auto& part : parts) made.blocks[part.block] = part.digest;
    for (auto gone : core::to_delete(steps(), keep_, {})) checkpoints_.erase(gone);
  }
  std::optional<std::uint64_t> load(step_id step, block_index block) const {
    auto found = checkpoints_.find(step);
    if (found == checkpoints_.end() || found->second.damaged) return std::nullopt;
    return found->second.blocks.at(block);
  }
  /// Spoils the newest one; false when there is none.
  bool damage_newest() {
    if (checkpoints_.empty()) return false;
    checkpoints_.rbegin()->second.damaged = true;
    return true;
  }
  /// All that have a manifest, damaged or not: nobody has read them yet.
  std::vector<step_id> steps() const {
    std::vector<step_id> found;
    for (auto& [step, c] : checkpoints_) found.push_back(step);
    return found;
  }

private:
  struct checkpoint {
    std::map<block_index, std::uint64_t> blocks;
    bool damaged = false;
  };
  checker& check_;
  std::uint32_t keep_;
  std::map<step_id, checkpoint> checkpoints_;
};

}  // namespace shoal::sim
