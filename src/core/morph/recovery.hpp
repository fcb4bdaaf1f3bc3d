#pragma once
// Where everyone meets after a view has ended, and who brings what.
//
//   node 1: step 7, blocks 0 1          A verdict on step 8 exists, so everyone who had to has the
//   node 2: step 8, blocks 2 3     ->   sums of step 8: node 1 rolls forward, all meet at step 8.
//   node 3: step 3, blocks 0 1          Node 3 slept through a view: its blocks are of no use.
//
// The meeting step is the newest at which every block has a live holder. That is the newest
// decided step, unless a block died with its holders; then the newest checkpoint is, if it is
// newer than what the living hold, or else the initial values (step 0). Going back is always
// right, only slow: steps are decided again, alike.
//
// Pure functions of what the nodes said.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/messages.hpp"
#include "core/morph/supervisor_io.hpp"

namespace shoal::core {

struct recovery_input {
  std::uint32_t block_count = 0;
  std::vector<standing> standings;   ///< one a node, all of them halted
  std::vector<step_id> checkpoints;  ///< usable ones
  std::vector<distrust> distrusted;  ///< holders that do not count
};

struct recovery_line {
  step_id meet;
  bool from_checkpoint = false;  ///< blocks without holders come from checkpoint `meet`, or initial
  std::optional<verdict> roll_forward;        ///< for those that are one step behind
  std::vector<node_id> rolling;               ///< those: at meet-1, with the sums
  std::vector<std::vector<node_id>> holders;  ///< by block, at `meet` or rolling, trusted
  std::vector<distrust> outvoted;  ///< digests that stood against a majority, or had none
  std::string reason;              ///< a sentence
};

/// Decides the meeting step.
recovery_line find_recovery_line(const recovery_input& input);

/// One holder's digest of a block.
struct ballot {
  node_id node;
  std::uint64_t digest = 0;
};
/// The nodes whose digest is not that of more than half: none when all agree, all without majority.
std::vector<node_id> outvoted(const std::vector<ballot>& ballots);

/// What the prepare messages of a view are made from.
struct prepare_input {
  term_id term;
  view_id view;
  layout shape;
  recovery_line line;
  bool checkpoint_exists = false;  ///< one of step line.meet
  std::vector<member> nodes;       ///< all that take part: of the layout, and holders of blocks
  /// (receiver, source) that failed before: such a source comes last.
  std::map<std::pair<node_id, node_id>, std::uint32_t> strikes;
};
/// The prepare of each node in `nodes`. Sources are spread: the holder asked for the least so far
/// is preferred. Members are those of the layout and all named sources.
std::vector<std::pair<node_id, prepare>> make_prepares(const prepare_input& input);

}  // namespace shoal::core
