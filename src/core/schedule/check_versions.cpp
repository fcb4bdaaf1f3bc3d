// Rule 6, first half: every pass reads the weights that the semantics say, and they are there.
#include <algorithm>
#include <map>

#include "core/schedule/breach.hpp"
#include "core/schedule/checks.hpp"
#include "core/schedule/text.hpp"

namespace shoal::core::checks {

namespace {

/// The versions of one stage's weights on one rank.
struct shelf {
  std::uint32_t newest = 0;
  std::vector<std::uint32_t> live{0};

  bool has(std::uint32_t version) const {
    return std::find(live.begin(), live.end(), version) != live.end();
  }
};

class rank_walk {
public:
  rank_walk(const subject& s, rank_index r) : s_(s), r_(r) {}

  result<void> run(rank_figures& figures) {
    auto& order = s_.plan.ranks[r_];
    for (std::size_t i = 0; i < order.size(); ++i) {
      TRY_VOID(step(i, order[i]));
      figures.versions_peak = std::max(
        figures.versions_peak, static_cast<std::uint32_t>(shelves_[order[i].stage].live.size()));
    }
    return {};
  }

private:
  error wrong(std::size_t i, const std::string& what) const {
    return breach(rule::memory, r_, i, s_.plan.ranks[r_][i], what);
  }

  result<void> step(std::size_t i, const cell& c) {
    auto& shelf = shelves_[c.stage];
    if (c.what == operation::optimize) {
      if (c.version != shelf.newest + 1)
        return wrong(i, "an update publishes the version after the newest, @" +
                          std::to_string(shelf.newest + 1));
      shelf.live.push_back(++shelf.newest);
      if (s_.plan.weights == weight_semantics::double_buffered && shelf.live.size() > 2)
        return wrong(i, "a third version would be alive; drop @" + std::to_string(shelf.live[0]) +
                          " before it");
      return {};
    }
    if (c.what == operation::drop_version) {
      if (c.version == shelf.newest) return wrong(i, "the newest version cannot be dropped");
      if (!shelf.has(c.version)) return wrong(i, absent(shelf, i, c));
      std::erase(shelf.live, c.version);
      return {};
    }
    if (!is_compute(c.what)) return {};
    if (c.what == operation::forward) {
      TRY_VOID(check_forward(i, c, shelf));
    } else if (auto& f = s_.index.at(s_.index.find(operation::forward, c.stage, c.micro_batch));
               f.version != c.version) {
      return wrong(i, "its forward pass read @" + std::to_string(f.version) + ", so must it");
    }
    return shelf.has(c.version) ? result<void>{} : wrong(i, absent(shelf, i, c));
  }

  std::string absent(const shelf& shelf, std::size_t i, const cell& c) const {
    auto version = "version " + std::to_string(c.version);
    if (c.version > shelf.newest)
      return version + " is not there yet; the newest is @" + std::to_string(shelf.newest);
    auto& order = s_.plan.ranks[r_];
    for (std::size_t k = 0; k < i; ++k)
      if (order[k].what == operation::drop_version && order[k].stage == c.stage &&
          order[k].version == c.version)
        return version + " was dropped at cell " + std::to_string(k) + "; drop it after cell " +
               std::to_string(i);
    return version + " is not there";
  }

  result<void> check_forward(std::size_t i, const cell& c, const shelf& shelf) const {
    auto must = [&](std::uint32_t version, const char* why) -> result<void> {
      if (c.version == version) return {};
      return wrong(i, std::string(why) + " is @" + std::to_string(version));
    };
    switch (s_.plan.weights) {
      case weight_semantics::stash:
        return must(shelf.newest, "a forward pass reads the newest version, which");
      case weight_semantics::vertical_sync: {
        auto& first = s_.index.at(s_.index.find(operation::forward, 0, c.micro_batch));
        if (c.stage == 0) return must(shelf.newest, "stage 0 reads the newest version, which");
        return must(first.version, "the version that travels with the micro-batch");
      }
      case weight_semantics::double_buffered: {
        auto batch = c.micro_batch / s_.plan.batch_size();
        return must(batch > 0 ? batch - 1 : 0, "the version one batch old");
      }
      case weight_semantics::flush:
        break;
    }
    return {};
  }

  const subject& s_;
  rank_index r_;
  std::map<virtual_stage, shelf> shelves_;
};

result<void> no_versions(const subject& s) {
  for (rank_index r = 0; r < s.plan.rank_count(); ++r)
    for (std::size_t i = 0; i < s.plan.ranks[r].size(); ++i)
      if (auto& c = s.plan.ranks[r][i]; c.version != none || c.what == operation::drop_version)
        return breach(rule::memory, r, i, c,
                      "with a flush there is one version of the weights; leave it out");
  return {};
}

}  // namespace

result<void> versions(const subject& s, std::vector<rank_figures>& figures) {
  for (auto& f : figures) f.versions_peak = 1;
  if (s.plan.weights == weight_semantics::flush) return no_versions(s);
  for (rank_index r = 0; r < s.plan.rank_count(); ++r) TRY_VOID(rank_walk(s, r).run(figures[r]));
  return {};
}

}  // namespace shoal::core::checks
