#include "core/plan/plan_text.hpp"

#include <algorithm>
#include <cmath>

#include "base/units.hpp"

namespace shoal::core::planning {

namespace {

std::string listed(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    // Many replicas are told by their beginning and end.
    if (numbers.size() > 8 && i == 3) text += ", ...", i = numbers.size() - 2;
    text += (i == 0 ? "" : i + 1 == numbers.size() ? " and " : ", ") + std::to_string(numbers[i]);
  }
  return text;
}

/// The next three numbers of replicas.
std::string others_of(const candidate& chosen, const search& found) {
  std::vector<std::pair<double, std::size_t>> others;
  for (auto& [replicas, seconds] : found.best_by_replicas())
    if (replicas != chosen.chains.size()) others.emplace_back(seconds, replicas);
  constexpr std::size_t shown = 3;
  auto end = others.begin() + static_cast<std::ptrdiff_t>(std::min(shown, others.size()));
  std::partial_sort(others.begin(), end, others.end());
  std::string text;
  for (auto it = others.begin(); it != end; ++it)
    text += (it == others.begin() ? "; " : ", ") + count_of(it->second, "replica") +
            " would take at least " + text_of_time(it->first);
  return text;
}

}  // namespace

nanoseconds nanoseconds_of(double seconds) {
  return nanoseconds(std::llround(std::clamp(seconds, 0.0, 1e9) * 1e9));
}

std::string text_of_bytes(std::uint64_t bytes) { return text_of(byte_count{bytes}); }

std::string text_of_time(double seconds) { return shoal::text_of(nanoseconds_of(seconds)); }

std::string count_of(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

void spare_list::add(node_id node, const std::string& why) {
  nodes.push_back(node);
  by_reason[why].push_back(node);
}

std::string spare_list::text() const {
  constexpr std::size_t named_max = 4;
  std::string all;
  for (auto [why, group] : by_reason) {
    std::ranges::sort(group);
    all += group.size() == 1 ? "; node " : "; nodes ";
    for (std::size_t i = 0; i < std::min(group.size(), named_max); ++i)
      all += (i == 0 ? "" : ", ") + std::to_string(group[i].value);
    if (group.size() > named_max)
      all += " and " + std::to_string(group.size() - named_max) + " more";
    all += (group.size() == 1 ? " is spare: " : " are spare: ") + why;
  }
  return all;
}

std::string reason_for(const candidate& chosen, const search& found, const layout& present) {
  std::vector<std::uint32_t> depths, shares;
  double slowest_s = 0;
  std::ptrdiff_t again = 0;
  for (auto& replica : chosen.chains) {
    again += std::ranges::count(replica.recompute, true);
    depths.push_back(static_cast<std::uint32_t>(replica.workers.size()));
    shares.push_back(replica.micro_batches.size());
    slowest_s = std::max(slowest_s, replica.slowest_s);
  }
  auto text = count_of(chosen.chains.size(), "replica") + " of " + listed(depths) +
              (depths == std::vector<std::uint32_t>{1} ? " stage" : " stages") + " on " +
              count_of(chosen.worker_count(), "node") + ", " + listed(shares) +
              " micro-batches: " + text_of_time(chosen.step_s) + " a step, " +
              text_of_time(slowest_s) + " a micro-batch in the slowest stage, " +
              text_of_time(chosen.exchange_s) + " to exchange gradients";
  if (again > 0)
    text += ", " + count_of(static_cast<std::size_t>(again), "stage") + " recomputing to fit";
  if (chosen.redo_s > 0)
    text += ", " + text_of_time(chosen.redo_s) +
            " to redo what losses undo, as each block has one holder";
  text += others_of(chosen, found);
  if (!present.replicas.empty()) {
    if (chosen.shape() == present)
      text += "; nothing changes";
    else
      text += "; " + text_of_bytes(chosen.moved_bytes) + " move";
  }
  return text;
}

}  // namespace shoal::core::planning
