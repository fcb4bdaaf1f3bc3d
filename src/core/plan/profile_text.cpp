#include "core/plan/profile_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <queue>
#include <unordered_map>

#include "base/units.hpp"

namespace shoal::core::planning {

namespace {

// A row with less than this share of all time is too quick to judge by its ratio.
constexpr double heavy_share = 0.02;
constexpr double ratio_min = 0.5, ratio_max = 3.5;

error at_line(std::uint32_t line, const std::string& what) {
  return {errc::config, "line " + std::to_string(line) + " of the profile: " + what};
}

std::string quoted(std::string_view text) {
  constexpr std::size_t shown_max = 60;
  return "\"" + std::string(text.substr(0, shown_max)) + (text.size() > shown_max ? "...\"" : "\"");
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, std::string_view by) {
  std::vector<std::string_view> parts;
  for (;;) {
    auto end = text.find(by);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + by.size());
  }
}

/// A number that a time or size can be.
result<double> number(std::string_view text, std::string_view name, std::uint32_t line) {
  constexpr double number_max = 1e15;
  text = trimmed(text);
  double value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size())
    return at_line(line, std::string(name) + " is " + quoted(text) + ", not a number");
  if (!(value >= 0 && value <= number_max))
    return at_line(line, std::string(name) + " is " + quoted(text) + "; it may be 0 to 1e15");
  return value;
}

/// "12.5", or "[1.0; 2.0]".
result<double> number_or_list(std::string_view text, std::string_view name, std::uint32_t line) {
  text = trimmed(text);
  if (text.empty() || text.front() != '[') return number(text, name, line);
  if (text.back() != ']') return at_line(line, std::string(name) + ": the list lacks its ]");
  double sum = 0;
  for (auto part : split(text.substr(1, text.size() - 2), ";")) {
    TRY(auto value, number(part, name, line));
    sum += value;
  }
  return sum;
}

result<profile_row> parse_row(std::string_view text, std::uint32_t line) {
  auto parts = split(text, " -- ");
  if (parts.size() < 3)
    return at_line(line, quoted(text) +
                           " is neither a node, \"id -- description -- "
                           "forward_compute_time=1.0, ...\", nor an edge, a tab and \"id -- id\"");
  // A description may contain the separator; the numbers are the last part, but for a stage.
  auto last = parts.size() - 1;
  if (trimmed(parts[last]).starts_with("stage_id=") && parts.size() > 3) --last;
  profile_row row;
  row.id = trimmed(parts[0]);
  row.description = trimmed(parts[1]);
  row.line = line;
  if (row.id.empty()) return at_line(line, "the node has no id before its first \" -- \"");
  struct field {
    std::string_view name;
    double profile_row::*member;
  };
  constexpr std::array fields{field{"forward_compute_time", &profile_row::forward_ms},
                              field{"backward_compute_time", &profile_row::backward_ms},
                              field{"activation_size", &profile_row::activation_bytes},
                              field{"parameter_size", &profile_row::parameter_bytes}};
  auto values = split(parts[last], ", ");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    auto expected = std::string(fields[i].name) + "=";
    auto value = i < values.size() ? trimmed(values[i]) : std::string_view();
    if (!value.starts_with(expected))
      return at_line(line, "expected " + expected + "NUMBER, found " +
                             (value.empty() ? "nothing" : quoted(value)));
    TRY(auto read, number_or_list(value.substr(expected.size()), fields[i].name, line));
    row.*fields[i].member = read;
  }
  if (values.size() > fields.size())
    return at_line(line, "after parameter_size stands " + quoted(values[fields.size()]) +
                           ", where the line should end");
  return row;
}

struct graph {
  std::vector<profile_row> rows;
  std::unordered_map<std::string, std::uint32_t> by_id;
  std::vector<std::vector<std::uint32_t>> next;
  std::vector<std::uint32_t> waits;  // for so many others
};

struct named_edge {
  std::string_view from, to;
  std::uint32_t line;
};

result<std::uint32_t> find(const graph& g, std::string_view id, std::uint32_t line) {
  auto found = g.by_id.find(std::string(trimmed(id)));
  if (found == g.by_id.end())
    return at_line(line, "the edge names " + quoted(trimmed(id)) + ", which is no node");
  return found->second;
}

result<graph> parse_graph(std::string_view text) {
  if (text.size() > profile_text_bytes_max)
    return {errc::config, "the profile has " + text_of(byte_count{text.size()}) + ", " +
                            text_of(byte_count{profile_text_bytes_max}) + " is the most"};
  graph g;
  std::vector<named_edge> edges;
  std::uint32_t line = 0;
  for (auto one : split(text, "\n")) {
    ++line;
    if (trimmed(one).empty()) continue;
    if (one.front() == '\t') {
      auto ends = split(one.substr(1), " -- ");
      if (ends.size() != 2)
        return at_line(line, quoted(one.substr(1)) + " is no edge, \"id -- id\"");
      if (edges.size() == profile_edge_count_max) return at_line(line, "too many edges");
      edges.push_back({ends[0], ends[1], line});
      continue;
    }
    TRY(auto row, parse_row(one, line));
    if (g.rows.size() == profile_node_count_max) return at_line(line, "too many nodes");
    auto [known, fresh] = g.by_id.emplace(row.id, static_cast<std::uint32_t>(g.rows.size()));
    if (!fresh)
      return at_line(line, "node " + quoted(row.id) + " was there before, in line " +
                             std::to_string(g.rows[known->second].line));
    g.rows.push_back(std::move(row));
  }
  if (g.rows.empty()) return {errc::config, "the profile has no nodes"};
  g.next.resize(g.rows.size());
  g.waits.resize(g.rows.size());
  for (auto& e : edges) {
    TRY(auto from, find(g, e.from, e.line));
    TRY(auto to, find(g, e.to, e.line));
    g.next[from].push_back(to);
    ++g.waits[to];
  }
  return g;
}

bool is_input(const profile_row& row) { return row.description.starts_with("Input"); }

/// The number in "node12"; nodes without one come last, as the file has them.
std::uint64_t number_of(const profile_row& row) {
  auto digits = row.id.find_first_of("0123456789");
  std::uint64_t value = UINT64_MAX;
  if (digits != row.id.npos)
    std::from_chars(row.id.data() + digits, row.id.data() + row.id.size(), value);
  return value;
}

/// Nodes in topological order, lower numbers first.
result<std::vector<std::uint32_t>> sorted(const graph& g) {
  using entry = std::pair<std::uint64_t, std::uint32_t>;
  std::priority_queue<entry, std::vector<entry>, std::greater<>> ready;
  auto waits = g.waits;
  auto add = [&](std::uint32_t i) { ready.emplace(number_of(g.rows[i]), i); };
  for (std::uint32_t i = 0; i < waits.size(); ++i)
    if (waits[i] == 0) add(i);
  std::vector<std::uint32_t> order;
  while (!ready.empty()) {
    auto i = ready.top().second;
    ready.pop();
    order.push_back(i);
    for (auto to : g.next[i])
      if (--waits[to] == 0) add(to);
  }
  if (order.size() == g.rows.size()) return order;
  for (std::uint32_t i = 0;; ++i)
    if (waits[i] > 0)
      return at_line(g.rows[i].line, "node " + quoted(g.rows[i].id) +
                                       " lies on a cycle of edges, or behind one; a model's graph "
                                       "has none");
}

/// What goes over each border: outputs made before it and used from it on.
void set_crossings(const graph& g, const std::vector<std::uint32_t>& order,
                   std::vector<profile_row>& rows) {
  constexpr auto left_out = UINT32_MAX;
  std::vector<std::uint32_t> position(g.rows.size(), left_out);
  std::uint32_t next = 0;
  for (auto i : order)
    if (!is_input(g.rows[i])) position[i] = next++;
  std::vector<double> change(rows.size() + 1, 0);
  for (std::uint32_t i = 0; i < g.rows.size(); ++i) {
    if (position[i] == left_out) continue;
    auto last_use = position[i];
    for (auto to : g.next[i])
      if (position[to] != left_out) last_use = std::max(last_use, position[to]);
    if (last_use == position[i]) continue;
    change[position[i] + 1] += g.rows[i].activation_bytes;
    change[last_use + 1] -= g.rows[i].activation_bytes;
  }
  double open = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].crossing_bytes = open += change[i];
}

void add_suspicions(text_profile& profile) {
  double all = 0;
  for (auto& row : profile.rows) all += row.forward_ms + row.backward_ms;
  for (auto& row : profile.rows) {
    auto time = row.forward_ms + row.backward_ms;
    if (time <= heavy_share * all) continue;
    auto ratio = row.forward_ms > 0 ? row.backward_ms / row.forward_ms : HUGE_VAL;
    if (ratio >= ratio_min && ratio <= ratio_max) continue;
    std::array<char, 32> shown{};
    std::snprintf(shown.data(), shown.size(), "%.1f", ratio);
    profile.suspicions.push_back(
      "line " + std::to_string(row.line) + ", " + row.id + " (" + row.description + "): backward " +
      "takes " + shown.data() + " times as long as forward, 0.5 to 3.5 is usual; " +
      (ratio > ratio_max ? "was forward timed without waiting for the device? Measure it again"
                         : "its backward may be counted with a neighbour. Measure it again"));
  }
}

}  // namespace

result<text_profile> parse_profile_text(std::string_view text) {
  TRY(auto g, parse_graph(text));
  TRY(auto order, sorted(g));
  text_profile made;
  for (auto i : order)
    if (!is_input(g.rows[i])) made.rows.push_back(g.rows[i]);
  if (made.rows.empty()) return {errc::config, "the profile has inputs only, and no layer"};
  set_crossings(g, order, made.rows);
  add_suspicions(made);
  return made;
}

std::vector<chain_block> blocks_of(const text_profile& profile) {
  std::vector<chain_block> blocks;
  for (auto& row : profile.rows)
    blocks.push_back({.forward = row.forward_ms,
                      .backward = row.backward_ms,
                      .parameter_bytes = row.parameter_bytes,
                      .held_bytes = row.parameter_bytes,
                      .stash_bytes = row.activation_bytes,
                      .boundary_bytes = row.crossing_bytes});
  return blocks;
}

}  // namespace shoal::core::planning
