// Rule 2: on each rank, what is needed comes before what needs it.
#include "core/schedule/breach.hpp"
#include "core/schedule/checks.hpp"
#include "core/schedule/text.hpp"

namespace shoal::core::checks {

namespace {

error late(const subject& s, rank_index r, std::size_t i, cell_number input) {
  auto& needed = s.index.at(input);
  return breach(rule::dependencies, r, i, s.plan.ranks[r][i],
                "it needs \"" + text_of(needed) + "\", which comes later, at cell " +
                  std::to_string(s.index.place_of(input)));
}

/// What a cell of an executable plan needs on its own rank beside its inputs that are there.
cell_number local_need(const subject& s, const cell& c) {
  auto at = [&](operation what) { return s.index.find(what, c.stage, c.micro_batch); };
  switch (c.what) {
    case operation::forward:
      return at(operation::receive_activation);
    case operation::backward:
    case operation::input_gradient:
      return at(operation::receive_gradient);
    case operation::send_activation:
      return at(operation::forward);
    case operation::send_gradient:
      return s.index.find_backward(c.stage, c.micro_batch);
    default:
      return no_cell;
  }
}

result<void> check_cell(const subject& s, rank_index r, std::size_t i) {
  auto& c = s.plan.ranks[r][i];
  auto self = s.index.number(r, i);
  auto first = s.index.number(r, 0);
  auto end = first + static_cast<cell_number>(s.plan.ranks[r].size());
  cell_number wrong = no_cell;
  auto look = [&](cell_number input) {
    if (input != no_cell && input > self && input >= first && input < end) wrong = input;
  };
  s.index.for_each_input(c, look);
  look(local_need(s, c));
  return wrong == no_cell ? result<void>{} : late(s, r, i, wrong);
}

}  // namespace

result<void> order(const subject& s) {
  for (rank_index r = 0; r < s.plan.rank_count(); ++r)
    for (std::size_t i = 0; i < s.plan.ranks[r].size(); ++i) TRY_VOID(check_cell(s, r, i));
  return {};
}

}  // namespace shoal::core::checks
