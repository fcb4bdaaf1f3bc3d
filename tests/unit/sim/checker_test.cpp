#include "sim/checker.hpp"

#include <catch2/catch.hpp>

using namespace shoal;
using namespace shoal::sim;

namespace {

constexpr std::uint32_t block_count = 2;

struct lab {
  core::job_options job = [] {
    core::job_options j;
    j.training.steps = 4;
    j.training.micro_batches = 3;
    return j;
  }();
  checker check{job, block_count};

  core::layout one_node(std::uint64_t node) const {
    core::layout shape;
    shape.replicas = {{{{{node}, {0, 2}}}, {0, 3}}};
    return shape;
  }
  holding right_at(std::uint64_t step) const {
    holding h;
    h.applied = {step};
    for (block_index b = 0; b < block_count; ++b)
      h.blocks[b] = check.undisturbed().weights[step][b];
    return h;
  }
  core::verdict word(std::uint64_t view, std::uint64_t step) const {
    auto v = check.undisturbed().verdicts[step];
    v.view = {view};
    return v;
  }
};

}  // namespace

TEST_CASE("a round decided as undisturbed is right, another verdict is not", "[sim]") {
  lab l;
  l.check.decided(l.word(1, 2));
  CHECK(l.check.ok());
  auto other = l.word(1, 2);
  other.loss = 0.5;
  l.check.decided(other);
  CHECK_FALSE(l.check.ok());
}

TEST_CASE("after a higher view is committed a lower one may decide once, not twice", "[sim]") {
  lab l;
  l.check.committed({1}, {0}, l.one_node(1), {});
  l.check.decided(l.word(1, 1));
  l.check.committed({2}, {1}, l.one_node(2), {});
  l.check.decided(l.word(1, 2));
  CHECK(l.check.ok());
  l.check.decided(l.word(1, 3));
  CHECK_FALSE(l.check.ok());
}

TEST_CASE("a commit is checked against what the members really hold", "[sim]") {
  auto ok = [](auto change, std::uint64_t step) {
    lab l;
    auto held = l.right_at(2);
    change(held);
    l.check.committed({1}, {step}, l.one_node(1), {{{1}, held}});
    return l.check.ok();
  };
  CHECK(ok([](holding&) {}, 2));
  CHECK_FALSE(ok([](holding&) {}, 3));
  CHECK_FALSE(ok([](holding& h) { h.blocks.erase(1); }, 2));
  CHECK_FALSE(ok([](holding& h) { ++h.blocks[0]; }, 2));
}

TEST_CASE("a view's number is good for one commit", "[sim]") {
  lab l;
  l.check.committed({3}, {0}, l.one_node(1), {});
  l.check.committed({3}, {0}, l.one_node(1), {});
  CHECK_FALSE(l.check.ok());
  lab back;
  back.check.committed({3}, {0}, back.one_node(1), {});
  back.check.committed({2}, {0}, back.one_node(1), {});
  CHECK_FALSE(back.check.ok());
}

TEST_CASE("going back is right only when a block has no holder", "[sim]") {
  lab l;
  auto whole = l.right_at(3), half = l.right_at(3);
  half.blocks.erase(0);
  l.check.meets({2}, {1}, {half});
  CHECK(l.check.ok());
  l.check.meets({2}, {3}, {whole, half});
  CHECK(l.check.ok());
  l.check.meets({2}, {2}, {whole, half});
  CHECK_FALSE(l.check.ok());
}

TEST_CASE("who could roll forward counts as a holder", "[sim]") {
  lab l;
  auto ahead = l.right_at(3), behind = l.right_at(2);
  ahead.blocks.erase(0);
  ahead.last_verdict = l.word(1, 3);
  behind.has_sums = true;
  l.check.meets({2}, {2}, {ahead, behind});
  CHECK_FALSE(l.check.ok());
}

TEST_CASE("sums with a micro-batch twice or missing are found", "[sim]") {
  lab l;
  l.check.summed({1}, {1}, 0, counted_once(0) + counted_once(1) + counted_once(2));
  CHECK(l.check.ok());
  l.check.summed({1}, {1}, 0, counted_once(0) + counted_once(1) + counted_once(1));
  CHECK_FALSE(l.check.ok());
}

TEST_CASE("a lower view must not be trained after hearing of a higher", "[sim]") {
  lab l;
  l.check.heard({1}, {2}, {});
  l.check.heard({1}, {2}, {2});
  CHECK(l.check.ok());
  l.check.heard({1}, {2}, {1});
  CHECK_FALSE(l.check.ok());
}

TEST_CASE("the symbols tell apart what must be told apart", "[sim]") {
  lab l;
  auto& w = l.check.undisturbed().weights;
  REQUIRE(w.size() == 5);
  for (std::size_t s = 1; s < w.size(); ++s)
    for (block_index b = 0; b < block_count; ++b) CHECK(w[s][b] != w[s - 1][b]);
  auto word = l.word(1, 1);
  CHECK(apply(7, 8, word) != apply(7, 9, word));
  word.what = core::decision::skip;
  CHECK(apply(7, 8, word) == 7);
  CHECK(mix(1, 2) != mix(2, 1));
}
