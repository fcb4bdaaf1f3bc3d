// A whole plan as CSV.
#include "core/schedule/text.hpp"

namespace shoal::core {

std::string_view to_string(weight_semantics weights) {
  switch (weights) {
    case weight_semantics::flush:
      return "flush";
    case weight_semantics::stash:
      return "stash";
    case weight_semantics::vertical_sync:
      return "vertical_sync";
    case weight_semantics::double_buffered:
      return "double_buffered";
  }
  return "flush";
}

std::string csv_of(const pipeline_plan& plan, csv_heading heading) {
  std::string text;
  if (heading == csv_heading::whole) {
    text += "# name=" + plan.name + " weights=" + std::string(to_string(plan.weights)) +
            " batches=" + std::to_string(plan.batches) +
            " opportunistic=" + (plan.policy.opportunistic ? "1" : "0");
    if (plan.policy.live_max != none) text += " live_max=" + std::to_string(plan.policy.live_max);
    text += '\n';
  }
  for (auto& order : plan.ranks) {
    auto row = text_of(order);
    for (auto& c : row)
      if (c == ' ') c = ',';
    text += row;
    text += '\n';
  }
  return text;
}

}  // namespace shoal::core
