#pragma once
// Where each cell of a plan is, and what it must wait for.
//
//   cells are numbered through all ranks:   rank 0: 0 1 2 3 | rank 1: 4 5 6 7 | ...
//
//   F(s, m) waits for F(s-1, m);     R(s, m) for F(s, m);     W(s, m) for I(s, m);
//   B(s, m) and I(s, m) for F(s, m), for R(s, m) where there is one, for B or I(s+1, m).

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "core/schedule/pipeline_plan.hpp"

namespace shoal::core {

/// The number of a cell in a plan: ranks in order, each in program order.
using cell_number = std::uint32_t;
constexpr cell_number no_cell = UINT32_MAX;

/// Checks what every reader of a plan relies on: sizes within limits, placement a table of equal
/// rows, every number of a cell in range, a micro-batch where the operation needs one and only
/// there. `errc::config` with rule 3, place and limit. The rest is `validate_plan`'s.
result<void> check_shape(const pipeline_plan& plan);

/// Finds cells with a micro-batch by what they are. Built in one pass; of duplicates it knows the
/// first. Keeps a reference to the plan, which must outlive it and pass `check_shape`.
class cell_index {
public:
  explicit cell_index(const pipeline_plan& plan);

  /// The cell of that operation, stage and micro-batch; `no_cell` when there is none.
  cell_number find(operation what, virtual_stage s, micro_batch_index m) const {
    auto& table = tables_[static_cast<std::size_t>(what)];
    return table.empty() ? no_cell : table[std::size_t{s} * plan_.micro_batches + m];
  }
  /// B or I: what gives the gradient to the stage before.
  cell_number find_backward(virtual_stage s, micro_batch_index m) const {
    auto b = find(operation::backward, s, m);
    return b == no_cell ? find(operation::input_gradient, s, m) : b;
  }
  /// B or W: after it nothing of the micro-batch is kept at the stage.
  cell_number find_last(virtual_stage s, micro_batch_index m) const {
    auto b = find(operation::backward, s, m);
    return b == no_cell ? find(operation::weight_gradient, s, m) : b;
  }

  cell_number count() const { return first_.back(); }
  cell_number number(rank_index r, std::size_t i) const {
    return first_[r] + static_cast<cell_number>(i);
  }
  rank_index rank_of(cell_number n) const;
  std::size_t place_of(cell_number n) const { return n - first_[rank_of(n)]; }
  const cell& at(cell_number n) const { return plan_.ranks[rank_of(n)][place_of(n)]; }

  /// Calls `visit(cell_number)` for each cell in the plan that compute cell `c` waits for.
  template <class Visit>
  void for_each_input(const cell& c, Visit visit) const {
    auto s = c.stage;
    auto m = c.micro_batch;
    auto give = [&](cell_number n) {
      if (n != no_cell) visit(n);
    };
    if (c.what == operation::forward && s > 0) give(find(operation::forward, s - 1, m));
    if (c.what == operation::recompute) give(find(operation::forward, s, m));
    if (c.what == operation::weight_gradient) give(find(operation::input_gradient, s, m));
    if (c.what == operation::backward || c.what == operation::input_gradient) {
      give(find(operation::forward, s, m));
      give(find(operation::recompute, s, m));
      if (s + 1 < plan_.stage_count()) give(find_backward(s + 1, m));
    }
  }

private:
  const pipeline_plan& plan_;
  std::vector<cell_number> first_;  // of each rank, and one past the last cell
  std::vector<cell_number> tables_[operation_count];
};

/// The run of cells [i, end) that starts at place i of a rank and executes as one: a group, or one
/// cell. Returns end.
std::size_t end_of_group(const std::vector<cell>& order, std::size_t i);

}  // namespace shoal::core
