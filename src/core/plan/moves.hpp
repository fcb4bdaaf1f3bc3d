#pragma once
// Gives the places of a candidate to the nodes that already hold most of what belongs there.

#include <vector>

#include "core/plan/candidate.hpp"

namespace shoal::core::planning {

/// Lets nodes of one class change places, those of `pool` included that the candidate does not use
/// (it holds all that it uses), and shifts cuts as far as the step may take `step_limit_s`, so that
/// as few bytes as can be move from where `present` has them. Sets moved_bytes; with an empty
/// `present` nothing moves and nothing changes. Cubic in the number of nodes.
void settle(const price_list& prices, candidate& c, const std::vector<worker>& pool,
            const layout& present, double step_limit_s);

/// Parameters and state that nodes of `c` must fetch, coming from `present`.
std::uint64_t moved_bytes(const costs& cost, const candidate& c, const layout& present);

/// How long the node of `c` that lacks most fetches it over its link: the others do so meanwhile.
double pause_seconds(const costs& cost, const candidate& c, const layout& present);

/// The assignment of rows to columns with the largest sum of values; as many columns as rows or
/// more. A negative value forbids a pair. Ties go to the lower column, as far as the sum allows.
std::vector<std::size_t> assign(const std::vector<std::vector<std::int64_t>>& values);

}  // namespace shoal::core::planning
