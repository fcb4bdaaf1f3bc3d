#pragma once
// What must never happen, checked while the cluster runs. The first violation ends the run.
//
//  1. A round is decided as in the undisturbed job: what, clip factor, rate, loss and norm.
//  2. Weights after each applied step are those of the undisturbed job, on every node.
//  3. Every micro-batch is in a block's sum exactly once.
//  4. Two views do not train at once. What exactly is safe: once a higher view is committed, a
//  lower
//     one decides *at most one more round*. Its stages had reported that round before one of them
//     halted; the report is a promise that the round can be decided, and the word of a halted
//     stage cannot be taken back. Decided late or again it has the same content (1), and no
//     second one can follow, since the halted stage reports no more. The supervisor takes a node
//     for dead when its connection ended and it does not knock again; so the simulator does not
//     end a connection and keep the node from knocking at the same time (see old_view_over).
//  5. A view's number is committed once, with one layout, and by one supervisor.
//  6. When a view is committed, every member holds all blocks of its stage at one step.
//  7. Nobody goes back without need: if, among those who take part, every block has a holder at the
//     newest applied step, everyone meets there or later.
//  8. A node that has heard of a higher view trains no lower one.
//  9. A checkpoint that exists holds the weights of the undisturbed job.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/messages.hpp"
#include "sim/symbols.hpp"

namespace shoal::sim {

/// What a node really has, whatever it says. Read by the checks at commit and prepare.
struct holding {
  step_id applied;
  bool has_sums = false;
  std::map<block_index, std::uint64_t> blocks;
  std::optional<core::verdict> last_verdict;
};

class checker {
public:
  checker(const core::job_options& job, std::uint32_t block_count)
    : job_(job), block_count_(block_count), reference_(make_reference(job, block_count)) {}

  bool ok() const { return violation_.empty(); }
  const std::string& violation() const { return violation_; }
  const reference& undisturbed() const { return reference_; }

  void fail(std::string what);
  /// A lead has decided.
  void decided(const core::verdict& word);
  /// A node has applied a verdict, or got a block from somewhere: it must be the right one.
  void has_weights(node_id node, step_id step, block_index block, std::uint64_t weights);
  void summed(node_id node, step_id step, block_index block, std::uint64_t counts);
  /// The first commit of `view` leaves the supervisor. `members`: those that still live.
  void committed(view_id view, step_id step, const core::layout& shape,
                 const std::map<node_id, holding>& members);
  /// The supervisor lets nodes with `taking_part` meet at `meet`.
  void meets(view_id view, step_id meet, const std::vector<holding>& taking_part);
  /// A node trains `trains` (0: nothing) after hearing of `heard`.
  void heard(node_id node, view_id heard, view_id trains);
  void saved(step_id step, const std::vector<core::checkpoint_part>& parts);
  /// A step_done of the supervisor.
  void reported(const core::decided& word);

private:
  const core::job_options& job_;
  std::uint32_t block_count_;
  reference reference_;
  std::string violation_;
  view_id highest_committed_;
  std::map<view_id, core::layout> committed_;
  std::map<view_id, std::uint32_t> late_decisions_;
};

}  // namespace shoal::sim
