#include "app/node_kinds.hpp"

#include <charconv>
#include <cmath>

#include "base/units.hpp"

namespace shoal::app {

namespace {

constexpr std::uint32_t nodes_most = 1'000'000;

template <class Number>
bool read_number(std::string_view text, Number& number) {
  auto end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc{} && read.ptr == end;
}

/// "8", "4,speed=0.5", "4,memory=16GiB,speed=2".
result<node_kind> parse_kind(const std::string& text, std::uint64_t memory_bytes) {
  node_kind kind{.memory_bytes = memory_bytes};
  auto wrong = [&](const std::string& what) {
    return error{errc::usage, "--kind " + text + ": " + what +
                                "; expected COUNT[,speed=SHARE][,memory=SIZE], as in "
                                "8,speed=0.5,memory=16GiB"};
  };
  std::string_view rest = text;
  for (bool first = true; first || !rest.empty(); first = false) {
    auto comma = std::min(rest.find(','), rest.size());
    auto part = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (first) {
      if (!read_number(part, kind.count) || kind.count == 0 || kind.count > nodes_most)
        return wrong("\"" + std::string(part) + "\" is no number of nodes from 1 to " +
                     std::to_string(nodes_most));
    } else if (part.starts_with("speed=")) {
      if (!read_number(part.substr(6), kind.speed) || !(kind.speed >= 1e-3 && kind.speed <= 1e3))
        return wrong("a speed is a share of the profile's, from 0.001 to 1000");
    } else if (part.starts_with("memory=")) {
      auto bytes = parse_bytes(part.substr(7));
      if (!bytes) return wrong(bytes.error().text);
      kind.memory_bytes = bytes->value;
    } else {
      return wrong("\"" + std::string(part) + "\" is not known");
    }
  }
  return kind;
}

}  // namespace

result<std::vector<node_kind>> node_kinds_of(const plan_options& options,
                                             std::uint64_t memory_bytes) {
  std::vector<node_kind> kinds;
  std::uint64_t count = 0;
  for (auto& text : options.kinds) {
    TRY(auto kind, parse_kind(text, memory_bytes));
    count += kind.count;
    kinds.push_back(kind);
  }
  if (kinds.empty() && options.nodes == 0)
    return error{errc::usage, "how many nodes? Give --nodes COUNT, or --kind COUNT for each kind"};
  if (kinds.empty()) kinds.push_back({.count = options.nodes, .memory_bytes = memory_bytes});
  if (count > nodes_most)
    return error{errc::usage, "the kinds have " + std::to_string(count) + " nodes; at most " +
                                std::to_string(nodes_most) + " can be planned for"};
  if (options.nodes != 0 && options.nodes != node_count_of(kinds))
    return error{errc::usage, "--nodes " + std::to_string(options.nodes) + ", but the kinds have " +
                                std::to_string(count) +
                                " nodes; leave --nodes out, or make them "
                                "agree"};
  return kinds;
}

std::uint32_t node_count_of(const std::vector<node_kind>& kinds) {
  std::uint32_t count = 0;
  for (auto& k : kinds) count += k.count;
  return count;
}

std::vector<core::plan_node> nodes_of(const std::vector<node_kind>& kinds) {
  std::vector<core::plan_node> nodes;
  for (auto& k : kinds)
    for (std::uint32_t i = 0; i < k.count; ++i)
      nodes.push_back({{nodes.size() + 1}, k.speed, k.memory_bytes});
  return nodes;
}

}  // namespace shoal::app
