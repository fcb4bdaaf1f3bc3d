#include "unit/torch/with_torch.hpp"

#include <set>

#include "layout/interleave.hpp"
#include "torch/runner/stage_facts.hpp"
#include "unit/torch/runner/fleet.hpp"

namespace shoal::engine::test {

namespace {

const auto shape = make_layout({{{{1, 1}, {2, 2}, {3, 1}}, 4}, {{{4, 4}}, 2}});

struct facts_of {
  explicit facts_of(core::place at, core::job_options j = small_job(), core::layout of = shape)
    : job(std::move(j)), model(must_make(job.model)), facts(job, model, {1}, std::move(of), at) {}
  core::job_options job;
  chain model;
  stage_facts facts;
};

}  // namespace

TEST_CASE("a stage knows its neighbours and boundaries", "[torch][runner]") {
  facts_of middle({0, 1});
  CHECK(middle.facts.self().value == 2);
  REQUIRE(middle.facts.chunks().size() == 1);
  auto& whole = middle.facts.chunks()[0];
  CHECK(whole.previous.value == 1);
  CHECK(whole.next.value == 3);
  CHECK_FALSE(whole.first());
  CHECK_FALSE(whole.last());
  CHECK(whole.inputs[0].shape == std::vector<std::int64_t>{2, 6, 16});
  CHECK(middle.facts.holder(1, 3).value == 4);
  CHECK(middle.facts.is_member({4}));
  CHECK_FALSE(middle.facts.is_member({5}));
}

TEST_CASE("a stage with two chunks stands twice in the chain", "[torch][runner]") {
  auto twice = make_layout({{{{1, 2}, {2, 2}}, 4}, {{{4, 4}}, 2}});
  facts_of second({0, 1}, small_job(), shoal::test::interleave(twice, 2));
  REQUIRE(second.facts.chunks().size() == 2);
  auto& early = second.facts.chunks()[0];
  auto& late = second.facts.chunks()[1];
  CHECK(early.blocks == core::index_range{1, 2});
  CHECK(early.previous.value == 1);
  CHECK(early.next.value == 1);
  CHECK(late.blocks == core::index_range{3, 4});
  CHECK(late.previous.value == 1);
  CHECK(late.last());
  CHECK(core::text_of(second.facts.orders_of({1}).actions) ==
        "F0 F1 F0.1 B0.1 F1.1 B1.1 F2 B0 F3 B1 F2.1 B2.1 F3.1 B3.1 B2 B3");
}

TEST_CASE("shards cover a sum without overlap", "[torch][runner]") {
  facts_of whole({1, 0});
  for (std::int64_t count : {0, 1, 2, 3, 1001}) {
    auto first = whole.facts.shard_of(count, 0), second = whole.facts.shard_of(count, 1);
    CHECK(first.begin == 0);
    CHECK(second.begin == first.size);
    CHECK(first.size + second.size == count);
  }
}

TEST_CASE("each addition action belongs to its micro-batch, once", "[torch][runner]") {
  facts_of first({0, 0});
  std::size_t count = 0;
  for (micro_batch_index g = 0; g < 4; ++g)
    for (auto& action : core::actions_of(first.facts.sums(), g)) {
      CHECK(action.micro_batch == g);
      ++count;
    }
  CHECK(count == first.facts.sums().actions.size());
  CHECK(first.facts.pieces(0).begin == 0);
  CHECK(first.facts.pieces(1).end == first.facts.piece_count());
}

TEST_CASE("the frames of a round are those that its peers send", "[torch][runner]") {
  auto job = small_job();
  job.validation.every = 1;
  job.validation.micro_batches = 3;
  facts_of middle({0, 1}, job);
  std::map<core::frame_kind, int> count;
  std::set<frame_name> names;
  for (auto& f : middle.facts.expected({2})) {
    ++count[f.name.kind];
    CHECK(names.insert(f.name).second);
    CHECK(f.name.step.value == 2);
  }
  CHECK(count[core::frame_kind::validation] == 2);  // of three, one is the other replica's
  CHECK(count[core::frame_kind::activation] == 4);
  CHECK(count[core::frame_kind::gradient] == 4);
  CHECK(count[core::frame_kind::partial] == 2 * static_cast<int>(middle.facts.pieces(1).size()));
  CHECK(count[core::frame_kind::tied] == 0);
  CHECK(facts_of({0, 0}, job).facts.expected({1}).size() > 0);

  facts_of first({0, 0}, job);
  int tied = 0;
  for (auto& f : first.facts.expected({1}))
    if (f.name.kind == core::frame_kind::tied) {
      ++tied;
      CHECK(f.from.value == 3);
      CHECK(f.shape == std::vector<std::int64_t>{12 * 16});
    }
  CHECK(tied == 1);
}

TEST_CASE("the closing round validates and does nothing else", "[torch][runner]") {
  auto job = small_job();
  job.validation.every = 2;
  job.validation.micro_batches = 2;
  facts_of middle({0, 1}, job);
  CHECK(middle.facts.training({4}).size() == 0);
  for (auto& f : middle.facts.expected({4})) CHECK(f.name.kind == core::frame_kind::validation);
  auto actions = middle.facts.orders_of({4}).actions;
  for (auto& a : actions) CHECK(a.kind == core::action_kind::validate);
  CHECK(actions.size() == 1);
}

}  // namespace shoal::engine::test
