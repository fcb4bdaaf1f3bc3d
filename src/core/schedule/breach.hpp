#pragma once
// What a breach of a rule is told as.
//
//   rule 1 (counts), rank 2, cell 7 "2F3": it comes twice.
//
// The sixteen rules are those of pipeline schedules in general; `validate_plan.hpp` tells them.

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "core/schedule/pipeline_plan.hpp"

namespace shoal::core {

enum class rule : std::uint8_t {
  counts = 1,
  dependencies,
  placement,
  channels,
  cycles,
  memory,
  updates,
  ties,
  morphing,
  accumulation,
  offloading,
  groups,
  routing,
  denominators,
  hashes,
  warnings,
};

/// "counts", ...
std::string_view to_string(rule which);

/// "rule 1 (counts)"
std::string name_of(rule which);

/// "rank 2, cell 7 "2F3"": cells are counted from 0.
std::string place_of(rank_index r, std::size_t i, const cell& c);

/// `errc::config`, "rule 1 (counts), rank 2, cell 7 "2F3": `what`."
error breach(rule which, rank_index r, std::size_t i, const cell& c, const std::string& what);

/// `errc::config`, "rule 1 (counts): `what`."
error breach(rule which, const std::string& what);

}  // namespace shoal::core
