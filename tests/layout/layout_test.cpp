// Whatever shape the job is in, it computes what one process computes, bit for bit: all layouts of
// up to six nodes, under each schedule, with and without recompute and dropout.
#include "unit/torch/with_torch.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/schedule/schedule.hpp"
#include "layout/all_layouts.hpp"
#include "layout/interleave.hpp"
#include "layout/trial.hpp"
#include "unit/torch/helpers.hpp"

namespace shoal::test {

namespace {

constexpr std::uint32_t node_count = 6;
constexpr std::uint32_t block_count = 6;  // the embedding, four layers, the head

/// Two steps, so that the optimizer's state counts; validation before the second and at the end,
/// of fewer micro-batches than there may be replicas. Leaves of three are cut by most replicas.
core::job_options job_of(const std::string& kind, double dropout) {
  auto job = engine::test::small_job(kind, dropout);
  job.model.layers = block_count - 2;
  job.model.seq_len = 16;
  if (kind == "llama") {
    job.model.kv_heads = 1;
    job.training.reduction_leaf = 3;
  }
  job.training.micro_batches = 8;
  job.training.micro_batch_size = 1;
  job.training.steps = 2;
  job.validation.every = 1;
  job.validation.micro_batches = 3;
  return job;
}

/// Every layout once: with few stages the three ways to cut give the same.
std::set<core::layout> all_layouts(std::uint32_t micro_batches) {
  std::set<core::layout> all;
  for (auto& depths : all_depths(node_count, block_count))
    for (auto how : {split::even, split::front_heavy, split::back_heavy})
      all.insert(make_layout(depths, how, block_count, micro_batches));
  return all;
}

/// All that a runner takes from order and `recompute`: the actions of each stage in each kind of
/// round. (A stage recomputes where its program has R.)
std::vector<core::schedule> programs(const core::job_options& job, const core::layout& shape) {
  std::vector<core::schedule> all;
  auto replica_count = static_cast<std::uint32_t>(shape.replicas.size());
  for (replica_index r = 0; r < replica_count; ++r) {
    auto options = core::schedule_options_of(shape, r, job);
    options.validation_micro_batches =
      core::validation_share(job.validation.micro_batches, r, replica_count);
    auto made = core::generate(options);
    if (!made) FAIL(made.error().text);
    all.push_back(*made);
  }
  return all;
}

/// The layout in every order.
std::vector<core::layout> in_every_order(const core::layout& shape, core::recompute_rule rule) {
  std::vector<core::layout> all;
  for (auto order : core::stage_orders) {
    if (order == core::stage_order::varuna && rule != core::recompute_rule::always) continue;
    if (order == core::stage_order::interleaved) {
      for (auto chunks : {2u, 3u}) all.push_back(interleave(shape, chunks));
      continue;
    }
    auto& one = all.emplace_back(shape);
    one.order = order;
    if (order != core::stage_order::searched && order != core::stage_order::varuna) continue;
    for (auto& replica : one.replicas)
      for (auto s = replica.stages.size(); s-- > 0;)
        replica.ahead.push_back(static_cast<std::uint32_t>(3 * s + 1));
  }
  return all;
}

constexpr core::recompute_rule rules[] = {core::recompute_rule::never, core::recompute_rule::always,
                                          core::recompute_rule::as_needed};

/// Every second stage recomputes. False where that is said in one order too many: one with a chunk
/// a stage and one with several are enough.
bool recompute_by_turns(core::layout& shape) {
  if (shape.order != core::stage_order::eager && shape.order != core::stage_order::interleaved)
    return false;
  for (auto& replica : shape.replicas)
    for (std::size_t s = 0; s < replica.stages.size(); s += 2) replica.stages[s].recompute = true;
  return true;
}

/// Calls `visit(job, shape)` for all layouts, orders and `recompute`, leaving out what gives the
/// same programs on the same layout as one before it: that is the same run.
template <class Visitor>
void for_each_run(core::job_options job, Visitor visit) {
  for (auto& shape : all_layouts(job.training.micro_batches)) {
    std::vector<std::pair<std::vector<core::replica>, std::vector<core::schedule>>> seen;
    for (auto rule : rules)
      for (auto& ordered : in_every_order(shape, rule)) {
        job.training.recompute = rule;
        if (rule == core::recompute_rule::as_needed && !recompute_by_turns(ordered)) continue;
        auto bare = ordered.replicas;
        for (auto& replica : bare) replica.ahead.clear();
        std::pair these(std::move(bare), programs(job, ordered));
        if (std::ranges::find(seen, these) != seen.end()) continue;
        seen.push_back(std::move(these));
        visit(job, ordered);
      }
  }
}

}  // namespace

TEST_CASE("every layout, order and recompute gives the bits of the reference", "[torch][layout]") {
  auto kind = GENERATE("gpt2", "llama");
  auto dropout = GENERATE(0.0, 0.1);
  auto job = job_of(kind, dropout);
  expected_run expected(job);
  int runs = 0, wrong = 0;
  for_each_run(job, [&](const core::job_options& j, const core::layout& shape) {
    ++runs;
    auto difference = first_difference(j, shape, expected);
    if (!difference) return;
    FAIL_CHECK(kind << ", dropout " << dropout << ", recompute "
                    << static_cast<int>(j.training.recompute) << ", layout " << core::text_of(shape)
                    << ": " << *difference);
    if (++wrong == 5) FAIL("five runs differ; no more are tried");
  });
  INFO(runs << " runs of " << kind << ", dropout " << dropout);
  CHECK(runs > 600);
}

TEST_CASE("the layouts are many, sound and all different", "[layout]") {
  auto all = all_layouts(8);
  CHECK(all_depths(node_count, block_count).size() == 29);  // partitions of 1 to 6
  CHECK(all.size() == 82);
  for (auto& shape : all) {
    auto sound = core::check(shape, block_count, 8, errc::internal);
    INFO(core::text_of(shape));
    CHECK(sound);
  }
}

TEST_CASE("one wrong bit is named with its step and block", "[torch][layout]") {
  auto job = job_of("gpt2", 0);
  auto shape = make_layout({2, 1}, split::even, block_count, job.training.micro_batches);
  const expected_run right(job);
  REQUIRE_FALSE(first_difference(job, shape, right));
  auto wrong = right;
  wrong.digests[1][4] ^= 1;
  CHECK_THAT(first_difference(job, shape, wrong).value_or(""), Catch::Contains("step 1, block 4"));
  wrong = right;
  wrong.rounds[1].loss = std::nextafter(right.rounds[1].loss, 0.0);
  CHECK_THAT(first_difference(job, shape, wrong).value_or(""),
             Catch::Contains("round 2: the loss is"));
  wrong = right;
  wrong.last_validation = std::nextafter(*right.last_validation, 0.0);
  CHECK_THAT(first_difference(job, shape, wrong).value_or(""),
             Catch::Contains("round 3: the validation loss is"));
}

}  // namespace shoal::test
