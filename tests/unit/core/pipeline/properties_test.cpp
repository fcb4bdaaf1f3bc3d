// What must hold for any costs: T13 (changes of costs and names) and T14 (lower bounds).
#include "unit/core/pipeline/lab.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/rng.hpp"

namespace shoal::core {

namespace {

struct trial {
  pipeline_plan plan;
  simulation_costs costs;
};

trial draw(rng& random) {
  auto p = static_cast<std::uint32_t>(1 + random.below(6));
  auto m = static_cast<std::uint32_t>(1 + random.below(16));
  auto name = std::vector{"gpipe", "1f1b", "1f1b-eager"}[random.below(3)];
  trial t{made({.name = name, .ranks = p, .micro_batches = m}), {}};
  for (std::uint32_t s = 0; s < p; ++s)
    t.costs.stages.push_back({.forward_ns = static_cast<std::int64_t>(1 + random.below(1000)),
                              .backward_ns = static_cast<std::int64_t>(1 + random.below(1000))});
  t.costs.link = link_table::flat(static_cast<std::int64_t>(random.below(500)), 0);
  return t;
}

/// The longest way through the plan: order on a rank, and F and B of neighbours a latency apart.
/// Links without occupancy only. Written apart from the simulator: ends, not events.
std::int64_t critical_path(const trial& t) {
  std::map<std::tuple<operation, virtual_stage, micro_batch_index>, std::int64_t> end;
  auto last = t.plan.stage_count() - 1;
  auto latency = t.costs.link.latency_ns(0);
  std::vector<std::size_t> next(t.plan.ranks.size(), 0);
  std::vector<std::int64_t> free_at(t.plan.ranks.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (rank_index r = 0; r < t.plan.ranks.size(); ++r)
      for (; next[r] < t.plan.ranks[r].size(); ++next[r], moved = true) {
        auto& c = t.plan.ranks[r][next[r]];
        bool forward = c.what == operation::forward;
        std::int64_t input = 0;
        if (forward ? c.stage > 0 : c.stage < last) {
          auto from = end.find({c.what, forward ? c.stage - 1 : c.stage + 1, c.micro_batch});
          if (from == end.end()) break;
          input = from->second + latency;
        }
        auto& stage = t.costs.stages[c.stage];
        auto done = std::max(free_at[r], input) + (forward ? stage.forward_ns : stage.backward_ns);
        end[{c.what, c.stage, c.micro_batch}] = free_at[r] = done;
      }
  }
  return *std::max_element(free_at.begin(), free_at.end());
}

}  // namespace

TEST_CASE("T13: more cost never makes a strict list shorter; doubled costs double it",
          "[core][pipeline]") {
  rng random(11);
  for (int k = 0; k < 100; ++k) {
    auto t = draw(random);
    auto base = run_of(t.plan, t.costs).makespan_ns;
    auto more = t.costs;
    more.stages[random.below(more.stages.size())].forward_ns += 17;
    more.link.rows[0].latency_ns += 5;
    CHECK(run_of(t.plan, more).makespan_ns >= base);
    auto twice = t.costs;
    for (auto& s : twice.stages) s.forward_ns *= 2, s.backward_ns *= 2;
    twice.link.rows[0].latency_ns *= 2;
    CHECK(run_of(t.plan, twice).makespan_ns == 2 * base);
  }
}

TEST_CASE("T13: other names of the micro-batches change no time", "[core][pipeline]") {
  rng random(12);
  for (int k = 0; k < 100; ++k) {
    auto t = draw(random);
    auto renamed = t.plan;
    std::vector<micro_batch_index> names(t.plan.micro_batches);
    for (micro_batch_index m = 0; m < names.size(); ++m) names[m] = m;
    for (auto i = names.size(); i > 1; --i) std::swap(names[i - 1], names[random.below(i)]);
    for (auto& order : renamed.ranks)
      for (auto& c : order) c.micro_batch = names[c.micro_batch];
    CHECK(run_of(renamed, t.costs).makespan_ns == run_of(t.plan, t.costs).makespan_ns);
  }
}

TEST_CASE("T14: a strict list takes its critical path, and never less than the busiest rank",
          "[core][pipeline]") {
  rng random(13);
  for (int k = 0; k < 200; ++k) {
    auto t = draw(random);
    auto path = critical_path(t);
    auto free_links = run_of(t.plan, t.costs);
    CHECK(free_links.makespan_ns == path);
    for (auto& s : t.costs.stages) s.input_bytes = 1 + random.below(400);
    t.costs.link.rows[0].bytes_per_s = 1e9;  // a byte a ns: messages wait for one another
    auto busy_links = run_of(t.plan, t.costs);
    CHECK(busy_links.makespan_ns >= path);
    for (auto& r : busy_links.replicas[0]) CHECK(busy_links.makespan_ns >= r.busy_ns);
  }
}

}  // namespace shoal::core
