// Views come and go at any moment; the weights are those of the reference all the way.
#include "unit/torch/with_torch.hpp"

#include <algorithm>
#include <array>

#include "base/rng.hpp"
#include "layout/interleave.hpp"
#include "unit/torch/runner/fleet.hpp"

namespace shoal::engine::test {

namespace {

core::job_options morph_job(const std::string& kind) {
  auto job = small_job(kind, 0.1);
  job.model.layers = 4;  // 6 blocks
  job.training.steps = 8;
  job.validation.every = 3;
  job.validation.micro_batches = 4;
  job.checkpoint.every = 3;
  return job;
}

/// Some way to cut the six blocks over these nodes, and six micro-batches over the replicas.
core::layout random_layout(std::vector<std::uint64_t> nodes, rng& random) {
  for (auto i = nodes.size(); i > 1; --i) std::swap(nodes[i - 1], nodes[random.below(i)]);
  auto replica_count = 1 + random.below(std::min<std::uint64_t>(nodes.size(), 3));
  std::vector<chain_of_nodes> replicas(replica_count);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto& r = replicas[i < replica_count ? i : random.below(replica_count)];
    if (r.stages.size() < 6) r.stages.emplace_back(nodes[i], 1);
  }
  for (auto& r : replicas) {
    for (auto left = 6 - r.stages.size(); left > 0; --left)
      ++r.stages[random.below(r.stages.size())].second;
    r.micro_batches = 1;
  }
  for (auto left = 6 - replica_count; left > 0; --left)
    ++replicas[random.below(replica_count)].micro_batches;
  auto shape = make_layout(replicas);
  return random.below(3) == 0 ? shoal::test::interleave(shape, 2) : shape;
}

/// The life of a job under churn, from one seed.
class churn {
public:
  churn(const core::job_options& job, const expected_run& expected, std::uint64_t seed)
    : expected_(expected), random_(rng::of(std::array{seed}, "churn")), nodes_(job, seed) {
    for (; next_ <= 3; ++next_) nodes_.add(next_);
  }

  void run() {
    for (int views = 0; views < 12; ++views) {
      enter();
      for (auto rounds = random_.below(3); rounds > 0; --rounds) {
        auto word = nodes_.judge_round(expected_);
        nodes_.decide(word);
        if (word.last_of_view) return take_leave();
      }
      if (disturb()) return take_leave();
    }
    enter();
    nodes_.finish(expected_);
  }

private:
  std::vector<std::uint64_t> alive() const {
    std::vector<std::uint64_t> numbers;
    for (auto n = 1u; n < next_; ++n)
      if (nodes_.has(n)) numbers.push_back(n);
    return numbers;
  }

  void enter() {
    auto [step, checkpoint] = nodes_.find_meeting();
    shape_ = random_layout(alive(), random_);
    INFO("step " << step.value << ", " << core::text_of(shape_));
    nodes_.enter(shape_, step, checkpoint);
  }

  /// Ends the view in some rude way. True when the job was done before that.
  bool disturb() {
    auto members = numbers_of(shape_);
    auto way = random_.below(3);
    if (way == 0 && members.size() > 1) {  // in the middle of a round
      nodes_.wait_for_frames(random_.below(8));
    } else if (way == 1) {  // when some know the verdict and some do not
      auto word = nodes_.judge_round(expected_);
      members.resize(1 + random_.below(members.size()));
      nodes_.decide(word, members);
      if (word.last_of_view) {
        nodes_.decide(word);
        return true;
      }
    }
    if (random_.below(2) == 0 && alive().size() > 1)
      nodes_.kill(alive()[random_.below(alive().size())]);
    if (random_.below(2) == 0 && alive().size() < 6) nodes_.add(next_++);
    nodes_.halt_all();
    return false;
  }

  void take_leave() {
    nodes_.halt_all();
    for (auto number : numbers_of(shape_))
      CHECK(nodes_.standings.at(number).applied.value == nodes_.job().training.steps);
  }

  const expected_run& expected_;
  rng random_;
  fleet nodes_;
  std::uint64_t next_ = 1;
  core::layout shape_;
};

}  // namespace

TEST_CASE("halts, losses and arrivals at random moments leave the bits alone", "[torch][runner]") {
  auto job = morph_job(GENERATE("gpt2", "llama"));
  job.training.recompute = core::recompute_rule{GENERATE(false, true)};
  expected_run expected(job);
  for (std::uint64_t seed = 1; seed <= 15; ++seed) {
    INFO("seed " << seed);
    churn(job, expected, seed).run();
  }
}

TEST_CASE("who missed the verdict rolls forward with the sums it kept", "[torch][runner]") {
  auto job = morph_job("gpt2");
  expected_run expected(job);
  fleet nodes(job);
  for (auto n : {1, 2, 3}) nodes.add(static_cast<std::uint64_t>(n));
  nodes.enter(make_layout({{{{1, 2}, {2, 4}}, 4}, {{{3, 6}}, 2}}), {});
  nodes.decide(nodes.judge_round(expected));
  nodes.decide(nodes.judge_round(expected), {3});
  nodes.halt_all();
  CHECK(nodes.standings[1].applied.value == 1);
  CHECK(nodes.standings[1].has_sums);
  CHECK(nodes.standings[2].has_sums);
  CHECK(nodes.standings[3].applied.value == 2);
  CHECK_FALSE(nodes.standings[3].has_sums);
  REQUIRE(nodes.standings[3].last_verdict);
  CHECK(nodes.standings[3].last_verdict->step.value == 2);

  // Node 3, the only one that has applied step 2, goes. Its word is enough.
  auto last_word = nodes.standings[3].last_verdict;
  nodes.kill(3);
  CHECK(nodes.find_meeting().step.value == 1);
  auto shape = make_layout({{{{2, 3}, {1, 3}}, 6}});
  auto plans = nodes.plan(shape, {1});
  for (auto& [n, p] : plans) {
    p.step = {2};
    p.roll_forward = last_word;
  }
  nodes.send(plans);
  for (auto n : {1, 2}) {
    auto ready = nodes.wait_for<core::runner_prepared>(static_cast<std::uint64_t>(n));
    for (auto& b : ready.blocks) CHECK(b.digest == expected.digests[3][b.block]);
  }
  nodes.begin(plans);
  nodes.finish(expected);
}

TEST_CASE("a verdict of another view or round is not followed", "[torch][runner]") {
  auto job = morph_job("gpt2");
  expected_run expected(job);
  fleet nodes(job);
  nodes.add(1);
  auto shape = make_layout({{{{1, 6}}, 6}});
  nodes.enter(shape, {});
  auto word = nodes.judge_round(expected);
  auto other = word;
  other.view = word.view.next();
  nodes.decide(other, {1});
  other = word;
  other.step = word.step.next();
  nodes.decide(other, {1});
  nodes.decide(word);
  nodes.decide(word, {1});  // again
  auto second = nodes.judge_round(expected);
  nodes.halt_all();
  CHECK(nodes.standings[1].applied.value == 1);
  CHECK(nodes.standings[1].has_sums);
  nodes.decide(second, {1});  // after the halt
  nodes.at(1).begin(nodes.view());
  nodes.halt_all();
  CHECK(nodes.standings[1].applied.value == 1);
  nodes.enter(shape, {1});
  nodes.finish(expected);
}

TEST_CASE("a planned end of a view comes with a verdict", "[torch][runner]") {
  auto job = morph_job("gpt2");
  expected_run expected(job);
  fleet nodes(job);
  for (auto n : {1, 2}) nodes.add(static_cast<std::uint64_t>(n));
  nodes.enter(make_layout({{{{1, 3}, {2, 3}}, 6}}), {});
  auto word = nodes.judge_round(expected);
  word.last_of_view = true;
  nodes.decide(word);
  for (auto n : {1, 2}) {
    auto now = nodes.wait_for<core::runner_halted>(static_cast<std::uint64_t>(n)).now;
    CHECK(now.applied.value == 1);
    CHECK(now.blocks.size() == 3);
    nodes.standings[static_cast<std::uint64_t>(n)] = now;
  }
  // Node 2 leaves: it serves its blocks and is a spare once the view begins.
  nodes.enter(make_layout({{{{1, 6}}, 6}}), {1});
  nodes.at(2).halt();
  CHECK(nodes.skip_to<core::runner_halted>(2).now.blocks.empty());
  nodes.finish(expected);
}

TEST_CASE("progress tells view, round and actions", "[torch][runner]") {
  auto job = morph_job("gpt2");
  expected_run expected(job);
  fleet nodes(job);
  nodes.add(1);
  CHECK(nodes.at(1).progress().step.value == 0);
  nodes.enter(make_layout({{{{1, 6}}, 6}}), {});
  nodes.judge_round(expected);
  auto progress = nodes.at(1).progress();
  CHECK(progress.view.value == 1);
  CHECK(progress.step.value == 1);
  CHECK(progress.actions_done == 12);
}

}  // namespace shoal::engine::test
