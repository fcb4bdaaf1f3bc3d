#pragma once
// Who holds what: the shape of the job.
//
//            blocks 0..3        blocks 4..7
//   replica 0:  [node 1] ------> [node 2]      micro-batches 0..9
//   replica 1:  [node 3: all blocks]           micro-batches 10..15
//
// A replica is a chain of stages that together hold every block once. Replicas may differ in
// depth and in the number of micro-batches, so that every node is used.

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.hpp"
#include "base/strong_id.hpp"

namespace shoal::core {

/// The half-open range [begin, end) of blocks or of micro-batches.
struct index_range {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  constexpr std::uint32_t size() const { return end - begin; }
  constexpr bool contains(std::uint32_t i) const { return begin <= i && i < end; }
  friend constexpr auto operator<=>(const index_range&, const index_range&) = default;
  static constexpr auto type_name = "shoal::index_range";
  static auto fields(auto& x) { return std::tie(x.begin, x.end); }
};

/// A run of neighbouring blocks on one node.
struct stage {
  node_id node;
  index_range blocks;
  friend auto operator<=>(const stage&, const stage&) = default;
  static constexpr auto type_name = "shoal::stage";
  static auto fields(auto& x) { return std::tie(x.node, x.blocks); }
};

/// A chain of stages from the first block to the last, and the micro-batches that run through it.
struct replica {
  std::vector<stage> stages;
  index_range micro_batches;
  friend auto operator<=>(const replica&, const replica&) = default;
  static constexpr auto type_name = "shoal::replica";
  static auto fields(auto& x) { return std::tie(x.stages, x.micro_batches); }
};

/// In which order the stages of a view go forward and backward. No bit depends on it.
enum class stage_order : std::uint8_t {
  as_job,  ///< as parallelism.schedule says
  one_f_one_b,
  eager,
  gpipe,
};

/// Which node holds which stage of which replica. Replica 0 leads: its coordinator decides.
struct layout {
  std::vector<replica> replicas;
  stage_order order = stage_order::as_job;  ///< another where the planner chooses
  friend auto operator<=>(const layout&, const layout&) = default;
  static constexpr auto type_name = "shoal::layout";
  static auto fields(auto& x) { return std::tie(x.replicas, x.order); }
};

/// Where a node stands in a layout. A node holds at most one stage.
struct place {
  replica_index replica = 0;
  stage_index stage = 0;
  friend auto operator<=>(const place&, const place&) = default;
};

/// Limits that keep every control message under 64 KiB.
constexpr std::uint32_t block_count_max = 512;
constexpr std::uint32_t micro_batch_count_max = 2048;
constexpr std::uint32_t node_count_max = 1024;

/// Finds the place of `node`; false when it has none.
bool find_place(const layout& shape, node_id node, place& found);

/// All nodes of the layout in order of replica and stage.
std::vector<node_id> nodes_of(const layout& shape);

/// The nodes that hold `block`, one a replica, in order of replica.
std::vector<node_id> holders_of(const layout& shape, block_index block);

/// Checks that each replica covers blocks [0, block_count) without a gap, overlap or empty stage,
/// that the replicas' micro-batches cover [0, micro_batch_count) in order with none empty, and that
/// no node holds two stages. `errc::internal` or `errc::protocol`, as the layout came, is the
/// caller's to choose: the error carries `code`.
result<void> check(const layout& shape, std::uint32_t block_count, std::uint32_t micro_batch_count,
                   errc code);

/// One line: "2 replicas: 1:[0-3] 2:[4-7] x10 | 3:[0-7] x6"; then the order, if it is not the
/// job's:
/// "..., 1f1b-eager".
std::string text_of(const layout& shape);

/// "1f1b", "1f1b-eager", "gpipe"; empty for `as_job`. And back; `as_job` for any other text.
std::string_view to_string(stage_order order);
stage_order stage_order_of(std::string_view name);

}  // namespace shoal::core
