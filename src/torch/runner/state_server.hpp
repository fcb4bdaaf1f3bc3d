#pragma once
// Gives peers the state of blocks that we hold, while a view gets ready.
//
//   asked for block b:  part 0: the digest, 8 bytes       or, when we do not hold b: part 0: no
//   bytes
//                       part 1..n: parameters and optimizer state, straight from where they live
//
// The plane may still be reading that memory when training begins (a peer that gave us up and got
// the block elsewhere reads slowly). So loans are kept in mind, and a block that is still lent
// moves to other memory before it changes.

#include <memory>
#include <vector>

#include "core/ports.hpp"
#include "torch/runner/holdings.hpp"

namespace shoal::engine {

/// Part 0 of a state, and back.
at::Tensor digest_tensor(std::uint64_t digest);
std::uint64_t digest_of(const at::Tensor& t);

/// Owned by the trainer's thread.
class state_server {
public:
  state_server(const core::job_options& job, const chain& model, holdings& blocks,
               core::tensor_plane& plane)
    : job_(job), model_(model), held_(blocks), plane_(plane) {}

  /// Sends `block`, as it is now, to `to`. Our blocks stand at the step of the view.
  void serve(view_id view, node_id to, block_index block);
  /// Before parameters change: those still lent get new memory.
  void call_loans_in();

private:
  struct loan {
    block_index block = 0;
    std::weak_ptr<void> memory;  // shared by the plane while it reads
  };
  const core::job_options& job_;
  const chain& model_;
  holdings& held_;
  core::tensor_plane& plane_;
  std::vector<loan> loans_;
};

}  // namespace shoal::engine
