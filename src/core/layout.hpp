#pragma once
// Who holds what: the shape of the job.
//
//            blocks 0..3        blocks 4..7
//   replica 0:  [node 1] ------> [node 2]      micro-batches 0..9
//   replica 1:  [node 3: all blocks]           micro-batches 10..15
//
// A replica is a chain of stages that together hold every block once. Replicas may differ in
// depth and in the number of micro-batches, so that every node is used. A stage may hold several
// runs of blocks (chunks); the chain then goes through all stages once for each chunk:
//
//   2 chunks:  [node 1: 0,1 and 4,5]   [node 2: 2,3 and 6,7]     1 -> 2 -> 1 -> 2

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
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

/// The blocks of a stage: runs of neighbours (chunks), in order of the chain.
class block_runs {
public:
  block_runs() = default;
  block_runs(std::uint32_t begin, std::uint32_t end) : chunks_{{begin, end}} {}
  explicit block_runs(std::vector<index_range> chunks) : chunks_(std::move(chunks)) {}

  const std::vector<index_range>& chunks() const { return chunks_; }
  bool contains(block_index block) const;
  /// How many blocks.
  std::uint32_t size() const;
  /// Their indices, ascending.
  std::vector<block_index> all() const;

  friend auto operator<=>(const block_runs&, const block_runs&) = default;
  static constexpr auto type_name = "shoal::block_runs";
  static auto fields(auto& x) { return std::tie(x.chunks_); }

private:
  std::vector<index_range> chunks_;
};

/// What one node holds and computes.
struct stage {
  node_id node;
  block_runs blocks;
  bool recompute = false;  ///< where the job leaves that to the planner; see `recomputes`
  friend auto operator<=>(const stage&, const stage&) = default;
  static constexpr auto type_name = "shoal::stage";
  static auto fields(auto& x) { return std::tie(x.node, x.blocks, x.recompute); }
};

/// A chain of stages from the first block to the last, and the micro-batches that run through it.
/// All stages have the same number of chunks; chunk c of stage s is part c * stages.size() + s of
/// the chain.
struct replica {
  std::vector<stage> stages;
  index_range micro_batches;
  /// One number a stage, or empty. `searched`: micro-batches forward before the first backward;
  /// `varuna`: micro-batches in flight at most; of no meaning in other orders.
  std::vector<std::uint32_t> ahead;
  friend auto operator<=>(const replica&, const replica&) = default;
  static constexpr auto type_name = "shoal::replica";
  static auto fields(auto& x) { return std::tie(x.stages, x.micro_batches, x.ahead); }

  std::uint32_t chunk_count() const {
    return stages.empty() ? 0 : static_cast<std::uint32_t>(stages.front().blocks.chunks().size());
  }
};

/// In which order the stages of a view go forward and backward. No bit depends on it.
enum class stage_order : std::uint8_t {
  as_job,  ///< as parallelism.schedule says
  one_f_one_b,
  eager,
  gpipe,
  searched,     ///< 1F1B, as far ahead as `replica::ahead` says
  interleaved,  ///< 1F1B over several chunks a stage
  varuna,       ///< Varuna's list, and what is ready where the list must wait
};

/// All that a view may name, by the memory that they take.
inline constexpr std::array stage_orders{stage_order::one_f_one_b, stage_order::interleaved,
                                         stage_order::eager,       stage_order::searched,
                                         stage_order::varuna,      stage_order::gpipe};

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

/// Where the replica's last block ends; 0 where it has none.
std::uint32_t block_count_of(const replica& chain);

/// All nodes of the layout in order of replica and stage.
std::vector<node_id> nodes_of(const layout& shape);

/// The nodes that hold `block`, one a replica, in order of replica.
std::vector<node_id> holders_of(const layout& shape, block_index block);

/// Checks that each replica covers blocks [0, block_count) without a gap, overlap or empty chunk,
/// that the replicas' micro-batches cover [0, micro_batch_count) in order with none empty, that
/// `ahead` fits the stages, and that no node holds two stages. `errc::internal` or
/// `errc::protocol`, as the layout came, is the caller's to choose: the error carries `code`.
result<void> check(const layout& shape, std::uint32_t block_count, std::uint32_t micro_batch_count,
                   errc code);

/// One line: "2 replicas: 1:[0-3] 2:[4-7] x10 | 3:[0-7] x6"; chunks as "1:[0-1,4-5]", a stage that
/// recomputes by the planner's choice as "1:[0-3]r"; then the order, if it is not the job's:
/// "..., 1f1b-eager".
std::string text_of(const layout& shape);
/// "0-1,4-5".
std::string text_of(const block_runs& blocks);

/// The name that `parallelism.schedule` has for it; empty for `as_job`. And back; `as_job` for any
/// other text.
std::string_view to_string(stage_order order);
stage_order stage_order_of(std::string_view name);

}  // namespace shoal::core
