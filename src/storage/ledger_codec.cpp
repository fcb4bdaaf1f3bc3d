#include "storage/ledger_codec.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "storage/strict_json.hpp"

namespace shoal::storage {

namespace {

using nlohmann::json;

constexpr std::uint64_t version_read = 4;
constexpr int ledger_depth = 8;  // ledger, shape, replica, its stages, stage, its blocks, range
constexpr std::size_t distrusted_max = std::size_t{core::node_count_max} * core::block_count_max;

error damaged(std::string text) { return {errc::damaged, std::move(text)}; }

/// The number `key`, when it fits a T.
template <class T>
result<T> small_number_of(const json& object, const char* key) {
  TRY(const auto number, number_of(object, key));
  if (number > std::numeric_limits<T>::max())
    return damaged("\"" + std::string(key) + "\" is too large");
  return static_cast<T>(number);
}

json text_of_range(core::index_range range) { return json::array({range.begin, range.end}); }

result<core::index_range> range_of(const json& ends, const char* key) {
  auto fits = [](const json& end) {
    return end.is_number_unsigned() && end.get<std::uint64_t>() <= UINT32_MAX;
  };
  if (!ends.is_array() || ends.size() != 2 || !fits(ends[0]) || !fits(ends[1]))
    return damaged("\"" + std::string(key) + "\" is not a pair of numbers");
  return core::index_range{ends[0].get<std::uint32_t>(), ends[1].get<std::uint32_t>()};
}

result<core::index_range> read_range(const json& object, const char* key) {
  TRY(const auto ends, list_of(object, key, 2));
  return range_of(ends, key);
}

/// A run of blocks for each chunk.
json encode_blocks(const core::block_runs& blocks) {
  auto chunks = json::array();
  for (auto chunk : blocks.chunks()) chunks.push_back(text_of_range(chunk));
  return chunks;
}

result<core::block_runs> read_blocks(const json& object, const char* key) {
  TRY(const auto list, list_of(object, key, core::block_count_max));
  std::vector<core::index_range> chunks;
  for (auto& entry : list) {
    TRY(const auto chunk, range_of(entry, key));
    chunks.push_back(chunk);
  }
  return core::block_runs(std::move(chunks));
}

json encode_layout(const core::layout& shape) {
  auto replicas = json::array();
  for (auto& replica : shape.replicas) {
    auto stages = json::array();
    for (auto& stage : replica.stages)
      stages.push_back({{"node", stage.node.value},
                        {"blocks", encode_blocks(stage.blocks)},
                        {"recompute", stage.recompute}});
    replicas.push_back({{"stages", std::move(stages)},
                        {"micro_batches", text_of_range(replica.micro_batches)},
                        {"ahead", replica.ahead}});
  }
  return replicas;
}

result<core::layout> read_layout(const json& object, const char* key) {
  core::layout shape;
  TRY(const auto replicas, list_of(object, key, core::node_count_max));
  for (auto& entry : replicas) {
    TRY_VOID(check_keys(entry, {"stages", "micro_batches", "ahead"}));
    core::replica replica;
    TRY(replica.micro_batches, read_range(entry, "micro_batches"));
    TRY(const auto stages, list_of(entry, "stages", core::block_count_max));
    for (auto& of : stages) {
      TRY_VOID(check_keys(of, {"node", "blocks", "recompute"}));
      core::stage stage;
      TRY(stage.node.value, number_of(of, "node"));
      TRY(stage.blocks, read_blocks(of, "blocks"));
      TRY(stage.recompute, truth_of(of, "recompute"));
      replica.stages.push_back(std::move(stage));
    }
    TRY(const auto ahead, list_of(entry, "ahead", core::node_count_max));
    for (auto& count : ahead) {
      if (!count.is_number_unsigned() || count.get<std::uint64_t>() > UINT32_MAX)
        return damaged("\"ahead\" is not a list of numbers of micro-batches");
      replica.ahead.push_back(count.get<std::uint32_t>());
    }
    shape.replicas.push_back(std::move(replica));
  }
  if (shape.replicas.empty()) return shape;
  // How many blocks and micro-batches the job has is not known here: its own ends say it.
  const auto& last = shape.replicas.back();
  const auto block_count = core::block_count_of(last);
  if (block_count > core::block_count_max || last.micro_batches.end > core::micro_batch_count_max)
    return damaged("\"shape\" has too many blocks or micro-batches");
  TRY_VOID(core::check(shape, block_count, last.micro_batches.end, errc::damaged));
  return shape;
}

json encode_member(const core::ledger_member& member) {
  return {{"node", member.who.node.value},
          {"incarnation", member.who.incarnation.value},
          {"host", member.at.host},
          {"control_port", member.at.control_port},
          {"tensor_port", member.at.tensor_port},
          {"process", member.process}};
}

result<core::ledger_member> read_member(const json& entry) {
  TRY_VOID(
    check_keys(entry, {"node", "incarnation", "host", "control_port", "tensor_port", "process"}));
  core::ledger_member member;
  TRY(member.who.node.value, number_of(entry, "node"));
  TRY(member.who.incarnation.value, number_of(entry, "incarnation"));
  TRY(member.at.host, string_of(entry, "host"));
  TRY(member.at.control_port, small_number_of<std::uint16_t>(entry, "control_port"));
  TRY(member.at.tensor_port, small_number_of<std::uint16_t>(entry, "tensor_port"));
  TRY(member.process, number_of(entry, "process"));
  return member;
}

result<core::distrust> read_distrust(const json& entry) {
  TRY_VOID(check_keys(entry, {"node", "block", "step"}));
  core::distrust found;
  TRY(found.node.value, number_of(entry, "node"));
  TRY(found.block, small_number_of<block_index>(entry, "block"));
  TRY(found.step.value, number_of(entry, "step"));
  return found;
}

/// What no reader of single keys sees.
result<void> check_whole(const core::ledger_state& state) {
  if (state.running > state.highest) return damaged("\"running\" is above \"highest\"");
  std::set<node_id> known;
  for (auto& member : state.members) {
    if (!member.who.node || member.who.node >= state.next_node)
      return damaged("a member has an id that was never given away");
    if (!known.insert(member.who.node).second)
      return damaged("node " + std::to_string(member.who.node.value) + " is a member twice");
  }
  for (auto node : core::nodes_of(state.shape))
    if (!known.contains(node))
      return damaged("node " + std::to_string(node.value) + " is in \"shape\" but is no member");
  return {};
}

}  // namespace

std::string encode_ledger(const core::ledger_state& state) {
  auto members = json::array();
  for (auto& member : state.members) members.push_back(encode_member(member));
  auto distrusted = json::array();
  for (auto& entry : state.distrusted)
    distrusted.push_back(
      {{"node", entry.node.value}, {"block", entry.block}, {"step", entry.step.value}});
  const json text{{"version", version_read},
                  {"job", hex_of(state.job)},
                  {"term", state.term.value},
                  {"next_node", state.next_node.value},
                  {"highest", state.highest.value},
                  {"running", state.running.value},
                  {"shape", encode_layout(state.shape)},
                  {"order", core::to_string(state.shape.order)},
                  {"members", std::move(members)},
                  {"distrusted", std::move(distrusted)}};
  return text.dump(-1, ' ', false, json::error_handler_t::replace);
}

result<core::ledger_state> decode_ledger(std::string_view text) {
  TRY(const auto object, parse_strictly(text, ledger_depth));
  TRY(const auto version, number_of(object, "version"));
  if (version != version_read)
    return error{errc::foreign, "the ledger is of version " + std::to_string(version) +
                                  "; this program reads version " + std::to_string(version_read)};
  TRY_VOID(check_keys(object, {"version", "job", "term", "next_node", "highest", "running", "shape",
                               "order", "members", "distrusted"}));
  core::ledger_state state;
  TRY(state.job, bits_of(object, "job"));
  TRY(state.term.value, number_of(object, "term"));
  TRY(state.next_node.value, number_of(object, "next_node"));
  TRY(state.highest.value, number_of(object, "highest"));
  TRY(state.running.value, number_of(object, "running"));
  TRY(state.shape, read_layout(object, "shape"));
  TRY(const auto order, string_of(object, "order"));
  state.shape.order = core::stage_order_of(order);
  if (core::to_string(state.shape.order) != order)
    return damaged("\"order\" is \"" + order + "\", which is no order of stages");
  TRY(const auto members, list_of(object, "members", core::node_count_max));
  for (auto& entry : members) {
    TRY(auto member, read_member(entry));
    state.members.push_back(std::move(member));
  }
  TRY(const auto distrusted, list_of(object, "distrusted", distrusted_max));
  for (auto& entry : distrusted) {
    TRY(const auto found, read_distrust(entry));
    state.distrusted.push_back(found);
  }
  TRY_VOID(check_whole(state));
  return state;
}

}  // namespace shoal::storage
