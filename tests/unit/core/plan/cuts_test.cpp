#include "core/plan/cuts.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <numeric>

#include "base/rng.hpp"
#include "unit/core/every_cut.hpp"

using namespace shoal;
using namespace shoal::core;
using namespace shoal::core::planning;

namespace {

struct chain_of_blocks {
  std::vector<double> seconds, speeds;

  double operator()(stage_index s, index_range blocks) const {
    return std::accumulate(seconds.begin() + blocks.begin, seconds.begin() + blocks.end, 0.0) /
           speeds[s];
  }
  double slowest(const std::vector<index_range>& cut) const {
    double worst = 0;
    for (stage_index s = 0; s < cut.size(); ++s) worst = std::max(worst, (*this)(s, cut[s]));
    return worst;
  }
  double optimum() const {
    double best = std::numeric_limits<double>::infinity();
    for_each_cut(std::uint32_t(seconds.size()), std::uint32_t(speeds.size()),
                 [&](auto& c) { best = std::min(best, slowest(c)); });
    return best;
  }
};

chain_of_blocks random_chain(rng& random) {
  chain_of_blocks chain;
  chain.speeds.resize(1 + random.below(4));
  chain.seconds.resize(chain.speeds.size() + random.below(9));
  for (auto& t : chain.seconds) t = random.below(4) == 0 ? 0.001 : random.uniform();
  for (auto& v : chain.speeds) v = random.below(2) == 0 ? 1 : 0.1 + random.uniform();
  return chain;
}

}  // namespace

TEST_CASE("blocks are cut so that the slowest stage is as fast as any cut allows", "[core][plan]") {
  rng random(1);
  for (int i = 0; i < 2000; ++i) {
    auto chain = random_chain(random);
    auto cut =
      cut_blocks(std::uint32_t(chain.seconds.size()), stage_index(chain.speeds.size()), chain);
    REQUIRE(cut);
    std::uint32_t reached = 0;
    for (auto range : *cut) {
      REQUIRE(range.begin == reached);
      REQUIRE(range.size() > 0);
      reached = range.end;
    }
    REQUIRE(reached == chain.seconds.size());
    REQUIRE(chain.slowest(*cut) == chain.optimum());
  }
}

TEST_CASE("chunks are cut by what their stages take together", "[core][plan]") {
  // As chunks of two stages, [1][1 1][1 1][5] is as even as can be, but node 0 would take 3 and
  // node 1 would take 7.
  std::vector<double> blocks{1, 1, 1, 1, 1, 5};
  auto time = [&](stage_index, index_range r) {
    return std::accumulate(blocks.begin() + r.begin, blocks.begin() + r.end, 0.0);
  };
  auto cut = cut_chunks(6, 2, 2, time);
  REQUIRE(cut);
  auto slowest = [&](const std::vector<index_range>& parts, std::size_t stages) {
    std::vector<double> loads(stages, 0);
    for (std::size_t p = 0; p < parts.size(); ++p)
      loads[p % stages] += time(stage_index(p), parts[p]);
    return *std::max_element(loads.begin(), loads.end());
  };
  CHECK(slowest(*cut, 2) == 6);
  // Near the best of all cuts, and never worse than chunk by chunk.
  rng random(5);
  double worst = 1;
  int best_found = 0;
  constexpr int draws = 300;
  for (int i = 0; i < draws; ++i) {
    blocks.clear();
    for (auto n = 6 + random.below(6); n > 0; --n) blocks.push_back(double(1 + random.below(20)));
    auto count = std::uint32_t(blocks.size());
    auto stages = std::uint32_t(2 + random.below(2));
    auto found = slowest(*cut_chunks(count, stages, 2, time), stages);
    REQUIRE(found <= slowest(*cut_blocks(count, 2 * stages, time), stages));
    auto best = std::numeric_limits<double>::infinity();
    std::vector<index_range> parts(2 * stages);
    auto try_from = [&](auto& self, std::size_t p, std::uint32_t begin) -> void {
      if (p + 1 == parts.size()) {
        parts[p] = {begin, count};
        best = std::min(best, slowest(parts, stages));
        return;
      }
      for (auto end = begin + 1; end + (parts.size() - 1 - p) <= count; ++end) {
        parts[p] = {begin, end};
        self(self, p + 1, end);
      }
    };
    try_from(try_from, 0, 0);
    worst = std::max(worst, found / best);
    best_found += found == best ? 1 : 0;
  }
  CAPTURE(worst, best_found);
  CHECK(worst < 1.2);
  CHECK(best_found > draws * 2 / 3);
}

TEST_CASE("there is no cut with more stages than blocks, or into stages that do not fit",
          "[core][plan]") {
  auto one_each = [](stage_index, index_range blocks) { return double(blocks.size()); };
  CHECK_FALSE(cut_blocks(3, 4, one_each));
  CHECK(cut_blocks(3, 3, one_each));
  auto at_most_two = [](stage_index, index_range blocks) {
    return blocks.size() > 2 ? std::numeric_limits<double>::infinity() : 1.0;
  };
  CHECK_FALSE(cut_blocks(7, 3, at_most_two));
  CHECK(cut_blocks(6, 3, at_most_two) == std::vector<index_range>{{0, 2}, {2, 4}, {4, 6}});
}

TEST_CASE("a cut within a limit is worth as much as any within it", "[core][plan]") {
  rng random(2);
  for (int i = 0; i < 1000; ++i) {
    auto chain = random_chain(random);
    auto blocks = std::uint32_t(chain.seconds.size());
    auto stages = stage_index(chain.speeds.size());
    // What each node holds already: a range of its own.
    std::vector<index_range> held(stages);
    for (auto& h : held) {
      h.begin = std::uint32_t(random.below(blocks));
      h.end = h.begin + std::uint32_t(random.below(blocks - h.begin + 1));
    }
    auto value = [&](stage_index s, index_range range) -> std::uint64_t {
      auto begin = std::max(range.begin, held[s].begin), end = std::min(range.end, held[s].end);
      return begin < end ? end - begin : 0;
    };
    auto limit = chain.optimum() * (1 + random.uniform());
    auto worth = [&](const std::vector<index_range>& cut) {
      std::uint64_t sum = 0;
      for (stage_index s = 0; s < stages; ++s) sum += value(s, cut[s]);
      return sum;
    };
    std::uint64_t best = 0;
    for_each_cut(blocks, stages, [&](auto& cut) {
      if (chain.slowest(cut) <= limit) best = std::max(best, worth(cut));
    });
    auto cut = recut_blocks(blocks, stages, limit, chain, value);
    REQUIRE(cut);
    REQUIRE(chain.slowest(*cut) <= limit);
    REQUIRE(worth(*cut) == best);
    REQUIRE_FALSE(recut_blocks(blocks, stages, chain.optimum() * 0.999, chain, value));
  }
}

TEST_CASE("micro-batches are shared so that the last replica ends as early as any sharing allows",
          "[core][plan]") {
  rng random(3);
  for (int i = 0; i < 1500; ++i) {
    std::vector<pace> paces(1 + random.below(4));
    for (auto& p : paces)
      p = {0.05 + random.uniform() * (random.below(3) == 0 ? 10 : 1), double(random.below(4)),
           random.uniform() / 2};
    auto grain = std::uint32_t(1 + random.below(3));
    auto grains = std::uint32_t(paces.size() + random.below(12));
    auto count = grains * grain;
    auto last = [&](auto& ranges) {
      double latest = 0;
      for (std::size_t r = 0; r < paces.size(); ++r)
        latest = std::max(latest, paces[r].finish(ranges[r].size()));
      return latest;
    };
    double best = std::numeric_limits<double>::infinity();
    for_each_cut(grains, std::uint32_t(paces.size()), [&](auto cut) {
      for (auto& range : cut) range = {range.begin * grain, range.end * grain};
      best = std::min(best, last(cut));
    });
    auto shared = share_out(paces, count, grain);
    REQUIRE(shared);
    std::uint32_t reached = 0;
    for (auto range : *shared) {
      REQUIRE(range.begin == reached);
      REQUIRE(range.size() > 0);
      REQUIRE(range.begin % grain == 0);
      reached = range.end;
    }
    REQUIRE(reached == count);
    REQUIRE(last(*shared) == Approx(best).epsilon(1e-7));
  }
}

TEST_CASE("the last leaf may be short, and no replica may be without one", "[core][plan]") {
  std::vector<pace> even(2, pace{1, 0, 0});
  CHECK(share_out(even, 7, 2) == std::vector<index_range>{{0, 4}, {4, 7}});
  CHECK_FALSE(share_out(std::vector<pace>(5, pace{1, 0, 0}), 7, 2));
  CHECK(share_out(std::vector<pace>(7, pace{1, 0, 0}), 7, 1).value().size() == 7);
  CHECK_FALSE(share_out(std::vector<pace>(8, pace{1, 0, 0}), 7, 1));
}
