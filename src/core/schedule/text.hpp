#pragma once
// Schedules as text: for people, and for torch.distributed.pipelining.
//
//   2F0  0SEND_F1  3OPT  2F0@5  4DROP@2  (0F3;7B1)OVERLAP_F_B       one cell
//
//   0F0,0F1,0F2,,0B0,0F3,0B1                                        a CSV: a row a rank, a cell
//   1F0,1F1,1B0,1F2,1B1                                             an action; empty is idle
//
// A cell is <stage><operation>[<micro-batch>][@<version>]. Operations: F B I W R SEND_F RECV_F
// SEND_B RECV_B REDUCE_GRAD TIE NORM OPT DROP MORPH_OK. Torch's cells are those without version, R,
// TIE, NORM, OPT, DROP, MORPH_OK; its UNSHARD and RESHARD have no meaning here and are refused.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "core/schedule/cell_costs.hpp"
#include "core/schedule/pipeline_plan.hpp"

namespace shoal::core {

/// "REDUCE_GRAD", ...
std::string_view to_string(operation what);

/// "2F0@5". The group is not part of it.
std::string text_of(const cell& c);

/// The cells of one rank, with spaces between: "0F0 (0F1;1B0)OVERLAP_F_B".
std::string text_of(const std::vector<cell>& order);

/// Reads one cell or an OVERLAP_F_B pair, whose cells get group 0; text is what `text_of` writes,
/// with blanks around allowed. `errc::config` for anything else, with the nearest legal operation,
/// the number that is too large (`plan_stages_max`, `plan_micro_batches_max`), or what is missing.
result<std::vector<cell>> parse_cells(std::string_view text);

/// "flush", "stash", "vertical_sync", "double_buffered"
std::string_view to_string(weight_semantics weights);

/// What the first line of a CSV says of the plan beyond its cells.
enum class csv_heading : std::uint8_t {
  none,   ///< nothing: what torch reads
  whole,  ///< "# name=varuna weights=flush batches=1 opportunistic=1 live_max=8": nothing is lost
};

/// One row a rank, each ended by a newline.
std::string csv_of(const pipeline_plan& plan, csv_heading heading = csv_heading::none);

/// Reads a CSV, with or without heading, compute cells only or with sends and the rest. Placement
/// is inferred: the rank of a stage is that whose row forwards it; micro-batches that find a stage
/// on different ranks run through different chains, numbered in order of micro-batch. Without
/// heading: name "imported", `flush`, one batch, strict order. For each plan that passes
/// `check_shape`, has groups in pairs numbered from 0 on each rank, chains numbered so, and every F
/// once, reading what `csv_of(plan, csv_heading::whole)` wrote gives the plan. `errc::config`,
/// naming row, column and cell, for unknown cells, absurd numbers, duplicates, and forwards that
/// are missing. At most `csv_bytes_max` bytes.
result<pipeline_plan> parse_csv(std::string_view text);
constexpr std::size_t csv_bytes_max = std::size_t{256} << 20;

/// A picture for the terminal, a line a rank, time from left to right, two letters a column:
///
///   0 F0F1....B0==F2B1==..B2==    operation and last digit of the micro-batch, "=" goes on,
///   1   F0B0==F1B1==F2B2==        "." idle between cells; small letters: the rank's 2nd, 4th, ...
///                                 virtual stage
///
/// A column is one unit of `costs` (empty: the default, else one for each rank), or more where the
/// plan would be wider than `columns_max` columns. Only compute cells take time and show. Cells
/// shorter than a column may hide each other. `errc::config` for a plan that fails `check_shape` or
/// deadlocks.
result<std::string> draw(const pipeline_plan& plan, const std::vector<cell_costs>& costs = {},
                         std::size_t columns_max = 120);

}  // namespace shoal::core
