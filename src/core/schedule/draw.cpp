// A schedule as a picture for the terminal.
#include <algorithm>

#include "base/assert.hpp"
#include "core/schedule/text.hpp"

namespace shoal::core {

namespace {

/// The virtual stages of a rank in order of their first cell.
std::vector<virtual_stage> stages_of(const std::vector<cell>& order) {
  std::vector<virtual_stage> stages;
  for (auto& c : order)
    if (std::find(stages.begin(), stages.end(), c.stage) == stages.end()) stages.push_back(c.stage);
  return stages;
}

std::string label(const cell& c, const std::vector<virtual_stage>& stages) {
  auto letter = to_string(c.what)[0];
  auto chunk = std::find(stages.begin(), stages.end(), c.stage) - stages.begin();
  if (chunk % 2 == 1) letter = static_cast<char>(letter - 'A' + 'a');
  return {letter, static_cast<char>('0' + c.micro_batch % 10)};
}

/// Writes a cell into columns [begin, end), one at least.
void put(std::string& line, std::uint64_t begin, std::uint64_t end, const std::string& label) {
  auto from = static_cast<std::size_t>(begin) * 2;
  auto to = std::max(from + 2, static_cast<std::size_t>(end) * 2);
  if (line.size() < from) line.append(from - line.size(), line.empty() ? ' ' : '.');
  if (line.size() < to) line.append(to - line.size(), '=');
  line.replace(from, 2, label);
}

}  // namespace

result<std::string> draw(const pipeline_plan& plan, const std::vector<cell_costs>& costs,
                         std::size_t columns_max) {
  SHOAL_ASSERT(columns_max >= 1);
  SHOAL_ASSERT(costs.empty() || costs.size() == plan.ranks.size());
  TRY_VOID(check_shape(plan));
  cell_index index(plan);
  TRY(auto times, unroll(plan, index, costs));
  std::uint64_t span = 0;
  for (auto& time : times) span = std::max(span, time.end);
  auto scale = std::max<std::uint64_t>(1, (span + columns_max - 1) / columns_max);

  std::string picture;
  auto width = std::to_string(plan.rank_count() - 1).size();
  for (rank_index r = 0; r < plan.rank_count(); ++r) {
    auto& order = plan.ranks[r];
    auto stages = stages_of(order);
    std::string line;
    for (std::size_t i = 0, end = 0; i < order.size(); i = end) {
      end = end_of_group(order, i);
      auto at = times[index.number(r, i)].begin;  // those of a group are drawn one after the other
      for (auto k = i; k < end; ++k) {
        if (!is_compute(order[k].what)) continue;
        auto takes = cost_of(costs_of(costs, r), order[k].what);
        put(line, at / scale, (at + takes) / scale, label(order[k], stages));
        at += takes;
      }
    }
    auto name = std::to_string(r);
    picture += std::string(width - name.size(), ' ') + name + " " + line + "\n";
  }
  return picture;
}

}  // namespace shoal::core
