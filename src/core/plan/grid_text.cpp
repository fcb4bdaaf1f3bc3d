#include "core/plan/grid_text.hpp"

#include <algorithm>
#include <cstdio>

#include "core/plan/plan_text.hpp"

namespace shoal::core::planning {

namespace {

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

std::string shape_of(const grid_plan& plan) {
  auto text = std::to_string(plan.replicas) + " x " + std::to_string(plan.depth) + " stages";
  if (plan.chunks > 1) text += " of " + std::to_string(plan.chunks) + " chunks";
  text += ", " + std::string(to_string(plan.schedule)) + ", " + std::to_string(plan.micro_batches) +
          " micro-batches of " + std::to_string(plan.micro_batch_size);
  auto again = std::count(plan.recompute.begin(), plan.recompute.end(), true);
  if (again > 0)
    text += ", recompute on " + std::to_string(again) + " of " + std::to_string(plan.cuts.size());
  return text;
}

std::string price_of(const grid_request& request, const grid_plan& plan) {
  auto text = text_of_time(plan.step_s) + " a step (pipeline " + text_of_time(plan.span_s) +
              ", bubble " + percent(plan.bubble) + ", gradients " + text_of_time(plan.exchange_s) +
              ")";
  if (plan.risk > 0) text += ", " + percent(plan.risk) + " lost to nodes that hold blocks alone";
  if (plan.pause_s > 0) text += ", a pause of " + text_of_time(plan.pause_s) + " to get there";
  if (request.price_per_hour > 0) {
    char money[32];
    std::snprintf(money, sizeof money, "%.6g", plan.score);
    text += std::string(", ") + money + " of money";
  }
  return text;
}

/// The part of its price in which `other` is worst, against the best.
std::string weakness(const grid_plan& best, const grid_plan& other) {
  auto busy = [](auto& p) { return p.span_s * (1 - p.bubble); };
  struct part {
    double loss;
    const char* name;
  };
  part parts[] = {{busy(other) - busy(best), "its slowest stage works longer"},
                  {other.span_s * other.bubble - best.span_s * best.bubble, "its bubble is larger"},
                  {other.exchange_s - best.exchange_s, "its gradients take longer"},
                  {other.risk * other.step_s - best.risk * best.step_s, "a loss costs it more"},
                  {other.pause_s - best.pause_s, "moving there takes longer"}};
  auto worst = std::max_element(std::begin(parts), std::end(parts),
                                [](auto& a, auto& b) { return a.loss < b.loss; });
  if (worst->loss > 0) return worst->name;
  return other.nodes() > best.nodes() ? "it uses more nodes for it" : "it takes no less memory";
}

}  // namespace

std::string explain(const grid_request& request, const grid_choice& choice) {
  auto& best = choice.best;
  auto text = "best: " + shape_of(best) + ": " + price_of(request, best) + ", fullest node " +
              text_of_bytes(best.stage_bytes_max) + "\n";
  for (auto& other : choice.next)
    text += "next: " + shape_of(other) + ": " + price_of(request, other) + "; " +
            percent(other.score / best.score - 1) + " worse, " + weakness(best, other) + "\n";
  auto idle = request.nodes - best.nodes();
  if (idle > 0)
    text += std::to_string(idle) + " of " + std::to_string(request.nodes) +
            " nodes stay idle: no grid with them is better\n";
  return text;
}

}  // namespace shoal::core::planning
