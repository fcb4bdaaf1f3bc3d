#pragma once
// What makes a checkpoint: its manifest. A checkpoint exists when its manifest does, not before.
//
//   checkpoints/step-00000120/manifest.json      written last
//                             block-000.safetensors ...
//
// Nothing in it depends on the layout: any layout can write it and any other can load it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/messages.hpp"

namespace shoal::core {

struct manifest {
  std::uint32_t version = 1;
  std::string job_text;  ///< the keys that decide the bits, canonical: another text is another job
  step_id step;          ///< of the weights; the sample cursor follows from it
  std::uint64_t weights_digest = 0;    ///< model_digest of the parts
  std::vector<checkpoint_part> parts;  ///< one a block, in chain order
  friend bool operator==(const manifest&, const manifest&) = default;
};

/// Checks that the parts are those of blocks 0..n-1, with plain file names, and that digests agree.
/// `errc::damaged`.
result<void> check(const manifest& m);

/// Which replica's holder writes `block`: the work is spread over all holders.
replica_index writer_of(block_index block, std::uint32_t replica_count);

/// Gathers the parts of one step from all writers.
class part_collector {
public:
  explicit part_collector(std::uint32_t block_count);
  /// Takes in a report. Returns the parts in chain order once all blocks of that step are there.
  /// A step older than the newest complete one is dropped; that one itself may be written again,
  /// when it turned out damaged. At most two generations are kept.
  std::optional<std::vector<checkpoint_part>> add(const parts_written& report);

private:
  struct generation {
    step_id step;
    std::vector<std::optional<checkpoint_part>> parts;
  };
  std::uint32_t block_count_;
  step_id newest_complete_;
  std::vector<generation> open_;
};

/// Which of the checkpoints at `steps` (any order) to delete to keep the newest `keep`, never the
/// one at `in_use`. 0 keeps all.
std::vector<step_id> to_delete(std::vector<step_id> steps, std::uint32_t keep, step_id in_use);

}  // namespace shoal::core
