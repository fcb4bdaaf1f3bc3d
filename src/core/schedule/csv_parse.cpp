// A whole plan from CSV: cells, then where each stage must be.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "base/nearest.hpp"
#include "core/schedule/text.hpp"

namespace shoal::core {

namespace {

error at_row(std::size_t row, error e) {
  return in("schedule, row " + std::to_string(row), std::move(e));
}

/// Splits off `text` what comes before the first `separator`, or all.
std::string_view take_until(std::string_view& text, char separator) {
  auto end = text.find(separator);
  auto part = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return part;
}

result<std::uint32_t> heading_number(std::string_view key, std::string_view text) {
  std::uint32_t value = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value == none)
    return {errc::config, "schedule, heading: \"" + std::string(key) +
                            "\" needs a whole number below 4294967295."};
  return value;
}

result<void> read_setting(pipeline_plan& plan, std::string_view key, std::string_view value) {
  if (key == "name") {
    bool plain =
      std::all_of(value.begin(), value.end(), [](char c) { return c > ' ' && c <= '~'; });
    if (value.empty() || value.size() > 64 || !plain)
      return {errc::config, "schedule, heading: a name has 1 to 64 printable letters, no blank."};
    plan.name = value;
    return {};
  }
  if (key == "weights") {
    std::vector<std::string> all;
    for (auto w : {weight_semantics::flush, weight_semantics::stash,
                   weight_semantics::vertical_sync, weight_semantics::double_buffered}) {
      all.emplace_back(to_string(w));
      if (value == to_string(w)) {
        plan.weights = w;
        return {};
      }
    }
    return {errc::config, "schedule, heading: there are no such weights; the nearest are \"" +
                            nearest_name(value.substr(0, 64), all) + "\"."};
  }
  TRY(auto number, heading_number(key.substr(0, 64), value));
  if (key == "batches") {
    if (number < 1) return {errc::config, "schedule, heading: batches must be at least 1."};
    plan.batches = number;
  } else if (key == "live_max") {
    plan.policy.live_max = number;
  } else {
    if (number > 1) return {errc::config, "schedule, heading: opportunistic is 0 or 1."};
    plan.policy.opportunistic = number == 1;
  }
  return {};
}

result<void> read_heading(pipeline_plan& plan, std::string_view line) {
  std::vector<std::string> keys{"name", "weights", "batches", "opportunistic", "live_max"};
  while (!line.empty()) {
    auto setting = take_until(line, ' ');
    if (setting.empty()) continue;
    auto equals = setting.find('=');
    auto key = setting.substr(0, equals);
    if (equals == std::string_view::npos || std::find(keys.begin(), keys.end(), key) == keys.end())
      return {errc::config, "schedule, heading: there is no such setting; the nearest is \"" +
                              nearest_name(key.substr(0, 64), keys) + "=\"."};
    TRY_VOID(read_setting(plan, key, setting.substr(equals + 1)));
  }
  return {};
}

/// Reads the cells of one row; `total` counts those of all rows.
result<std::vector<cell>> read_row(std::string_view line, std::size_t row, std::size_t& total) {
  std::vector<cell> order;
  std::uint32_t groups = 0;
  for (std::size_t column = 0; !line.empty(); ++column) {
    auto text = take_until(line, ',');
    if (text.find_first_not_of(" \t") == std::string_view::npos) continue;  // idle
    auto cells = parse_cells(text);
    if (!cells)
      return at_row(row, in("column " + std::to_string(column), std::move(cells).error()));
    if (cells->size() > 1) {
      for (auto& c : *cells) c.group = groups;
      ++groups;
    }
    order.insert(order.end(), cells->begin(), cells->end());
    total += cells->size();
    if (total > plan_cells_max)
      return {errc::config, "schedule: more than " + std::to_string(plan_cells_max) + " cells."};
  }
  return order;
}

/// Finds the sizes of the plan, and that every cell with a micro-batch is there once.
result<void> count(pipeline_plan& plan, virtual_stage& stages) {
  std::uint32_t micro_batches = 0;
  std::size_t forwards = 0;
  std::vector<std::pair<cell, rank_index>> cells;
  stages = 0;
  for (rank_index r = 0; r < plan.rank_count(); ++r)
    for (auto c : plan.ranks[r]) {
      stages = std::max(stages, c.stage + 1);
      if (c.micro_batch != none) micro_batches = std::max(micro_batches, c.micro_batch + 1);
      c.version = c.group = none;
      if (has_micro_batch(c.what)) cells.emplace_back(c, r);
      forwards += c.what == operation::forward;
    }
  plan.micro_batches = micro_batches;
  std::sort(cells.begin(), cells.end());
  for (std::size_t i = 1; i < cells.size(); ++i)
    if (cells[i].first == cells[i - 1].first)
      return {errc::config, "schedule, row " + std::to_string(cells[i].second) + ": \"" +
                              text_of(cells[i].first) + "\" comes twice; it is in row " +
                              std::to_string(cells[i - 1].second) + " too."};
  if (forwards == 0)
    return {errc::config, "schedule: no cell forwards; a schedule begins as in \"0F0\"."};
  // Sorted, forwards come first, by stage and micro-batch: the first that is not at its place is
  // missing. Their number bounds what the sizes claim before anything of that size is allocated.
  for (std::size_t i = 0; i < std::size_t{stages} * micro_batches; ++i) {
    cell wanted{.stage = static_cast<virtual_stage>(i / micro_batches),
                .micro_batch = static_cast<micro_batch_index>(i % micro_batches)};
    if (i >= forwards || cells[i].first != wanted)
      return {errc::config, "schedule: \"" + text_of(wanted) +
                              "\" is missing; the largest cells say " + std::to_string(stages) +
                              " stages and " + std::to_string(micro_batches) + " micro-batches."};
  }
  return {};
}

void infer_placement(pipeline_plan& plan, virtual_stage stages) {
  std::vector<std::vector<rank_index>> found(plan.micro_batches, std::vector<rank_index>(stages));
  for (rank_index r = 0; r < plan.rank_count(); ++r)
    for (auto& c : plan.ranks[r])
      if (c.what == operation::forward) found[c.micro_batch][c.stage] = r;
  std::map<std::vector<rank_index>, std::uint32_t> chains;
  std::vector<std::uint32_t> chain_of;
  for (auto& row : found) {
    auto [chain, fresh] = chains.emplace(row, static_cast<std::uint32_t>(chains.size()));
    if (fresh) plan.placement.push_back(row);
    chain_of.push_back(chain->second);
  }
  if (chains.size() > 1) plan.chain_of = std::move(chain_of);
}

}  // namespace

result<pipeline_plan> parse_csv(std::string_view text) {
  if (text.size() > csv_bytes_max)
    return {errc::config, "schedule: more than " + std::to_string(csv_bytes_max) + " bytes."};
  pipeline_plan plan;
  plan.name = "imported";
  std::size_t total = 0;
  for (bool first = true; !text.empty(); first = false) {
    auto line = take_until(text, '\n');
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (first && !line.empty() && line[0] == '#') {
      TRY_VOID(read_heading(plan, line.substr(1)));
      continue;
    }
    if (plan.ranks.size() == plan_ranks_max)
      return {errc::config, "schedule: more than " + std::to_string(plan_ranks_max) + " rows."};
    TRY(auto order, read_row(line, plan.ranks.size(), total));
    plan.ranks.push_back(std::move(order));
  }
  virtual_stage stages = 0;
  TRY_VOID(count(plan, stages));
  infer_placement(plan, stages);
  if (plan.micro_batches % plan.batches != 0)
    return {errc::config, "schedule, heading: " + std::to_string(plan.micro_batches) +
                            " micro-batches do not make " + std::to_string(plan.batches) +
                            " equal batches."};
  return plan;
}

}  // namespace shoal::core
