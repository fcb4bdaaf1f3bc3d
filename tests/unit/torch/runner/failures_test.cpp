// What goes wrong is named, and nothing that is held is lost by it.
#include "unit/torch/with_torch.hpp"

#include <array>
#include <limits>
#include <stdexcept>

#include "core/samples/samples.hpp"
#include "torch/block_runtime.hpp"
#include "unit/torch/runner/fleet.hpp"

namespace shoal::engine::test {

namespace {

core::job_options job_of() {
  auto job = small_job("gpt2");  // 4 blocks
  job.training.steps = 4;
  job.checkpoint.every = 2;
  return job;
}

/// Data whose sample of training number `bad` cannot be read.
class torn_data final : public dataset {
public:
  torn_data(const core::job_options& job, std::uint64_t bad) : whole_(job), bad_(bad) {}
  std::uint64_t size() const override { return whole_.size(); }
  std::uint64_t validation_size() const override { return whole_.validation_size(); }
  micro_batch get(std::span<const std::uint64_t> samples) const override {
    for (auto s : samples)
      if (s == bad_) throw std::runtime_error("sample is torn");
    return whole_.get(samples);
  }
  micro_batch get_validation(std::span<const std::uint64_t> s) const override {
    return whole_.get_validation(s);
  }
  std::uint64_t fingerprint() const override { return 2; }

private:
  small_data whole_;
  std::uint64_t bad_;
};

std::vector<std::uint64_t> samples_of(const core::job_options& job, step_id step,
                                      micro_batch_index g) {
  return core::samples_of({job.seed, 40, job.training.micro_batches, job.training.micro_batch_size},
                          step, g);
}

/// A checkpoint of step 2 with initial values, changed by `change`.
void put_checkpoint(fleet& nodes, const std::function<void(block_runtime&)>& change) {
  auto model = must_make(nodes.job().model);
  for (block_index b = 0; b < model.size(); ++b) {
    block_runtime block(nodes.job(), *model[b], b);
    block.initialize();
    change(block);
    nodes.store().put({2}, block.copy_state());
  }
}

float* parameter(block_runtime& block, std::size_t i) {
  auto t = block.state_tensors()[3 * i];  // adamw: two moments follow each parameter
  return reinterpret_cast<float*>(t.bytes.data);
}

const auto two_stages = make_layout({{{{1, 2}, {2, 2}}, 6}});
const auto two_replicas = make_layout({{{{1, 4}}, 3}, {{{2, 4}}, 3}});

/// Three nodes of which 1 and 2 hold all blocks at step 1.
struct holders_and_newcomer {
  explicit holders_and_newcomer(core::job_options j = job_of())
    : job(std::move(j)), expected(job), nodes(job) {
    for (auto n : {1, 2, 3}) nodes.add(static_cast<std::uint64_t>(n));
    nodes.enter(two_replicas, {});
    nodes.decide(nodes.judge_round(expected));
    nodes.halt_all();
  }
  core::job_options job;
  expected_run expected;
  fleet nodes;
};

const auto newcomer_alone = make_layout({{{{3, 4}}, 6}});

}  // namespace

TEST_CASE("a peer that breaks while training ends the round and is named", "[torch][runner]") {
  auto job = job_of();
  expected_run expected(job);
  fleet nodes(job);
  for (auto n : {1, 2}) nodes.add(static_cast<std::uint64_t>(n));
  nodes.enter(two_stages, {});
  nodes.decide(nodes.judge_round(expected));
  nodes.wait_for_frames(1);
  nodes.kill(2);
  auto failed = nodes.skip_to<core::runner_failed>(1);
  CHECK(failed.view == nodes.view());
  CHECK(failed.suspect.value == 2);
  CHECK(failed.why.code == errc::unreachable);
  CHECK_THAT(failed.why.text, Catch::Contains("node 2"));
  nodes.halt_all();
  CHECK(nodes.standings[1].applied.value == 1);
  CHECK(nodes.standings[1].blocks.size() == 2);
}

TEST_CASE("a frame that nobody owes breaks the connection and the round", "[torch][runner]") {
  auto job = job_of();
  expected_run expected(job);
  fleet nodes(job);
  for (auto n : {1, 2}) nodes.add(static_cast<std::uint64_t>(n));
  nodes.enter(two_stages, {});
  nodes.judge_round(expected);
  nodes.network().forge({2}, {1},
                        {.view = nodes.view(),
                         .step = {1},
                         .kind = core::frame_kind::gradient,
                         .block = 2,
                         .micro_batch = 0,
                         .part = 7,
                         .scalar = core::scalar_kind::f32,
                         .shape = {1},
                         .bytes = 4},
                        std::vector<std::byte>(4));
  CHECK(nodes.wait_for<core::runner_failed>(1).suspect.value == 2);
  CHECK(nodes.wait_for<core::runner_failed>(2).suspect.value == 1);
  REQUIRE(nodes.network().complaints().size() == 1);
  CHECK_THAT(nodes.network().complaints()[0],
             Catch::Contains("gradient of block 2") && Catch::Contains("part 7"));
}

TEST_CASE("a layout that does not fit the model is refused", "[torch][runner]") {
  fleet nodes(job_of());
  nodes.add(1);
  auto plans = nodes.plan(make_layout({{{{1, 3}}, 6}}), {});
  nodes.send(plans);
  auto failed = nodes.wait_for<core::runner_failed>(1);
  CHECK(failed.why.code == errc::protocol);
  nodes.at(1).begin(nodes.view());
  nodes.at(1).halt();
  CHECK(nodes.wait_for<core::runner_halted>(1).now.blocks.empty());
}

TEST_CASE("a loss that is not finite is named by micro-batch and block", "[torch][runner]") {
  auto job = job_of();
  job.training.on_not_finite =
    GENERATE(core::not_finite_policy::skip, core::not_finite_policy::stop);
  fleet nodes(job);
  for (auto n : {1, 2}) nodes.add(static_cast<std::uint64_t>(n));
  // Only the embedding of a token that some micro-batch is the first to use.
  micro_batch_index first = 0;
  std::int64_t token = 0;
  small_data data(job);
  auto uses = [&](micro_batch_index g, std::int64_t t) {
    return (data.get(samples_of(job, {3}, g)).inputs == t).any().item<bool>();
  };
  for (std::int64_t t = 0; t < 12 && first == 0; ++t)
    for (micro_batch_index g = 0; g < 6; ++g)
      if (uses(g, t)) {
        first = g, token = t;
        break;
      }
  put_checkpoint(nodes, [&](block_runtime& block) {
    if (block.index() == 0)
      parameter(block, 0)[16 * token] = std::numeric_limits<float>::quiet_NaN();
  });
  nodes.enter(two_stages, {2}, true);
  core::round_facts facts;
  facts.step = {3};
  auto front = nodes.next_report(1), back = nodes.next_report(2);
  REQUIRE(front.offence);
  CHECK(front.offence->micro_batch == first);
  CHECK(front.offence->block == 0);
  REQUIRE(back.offence);
  CHECK(back.offence->micro_batch == first);
  CHECK(back.offence->block == 2);

  core::verdict word;
  word.view = nodes.view();
  word.step = {3};
  bool stop = job.training.on_not_finite == core::not_finite_policy::stop;
  word.what = stop ? core::decision::abort : core::decision::skip;
  word.last_of_view = stop;
  nodes.decide(word);
  if (stop) {
    auto now = nodes.wait_for<core::runner_halted>(1).now;
    CHECK(now.applied.value == 2);
    CHECK(now.blocks[0].digest == front.blocks[0].digest);
  } else {
    auto next = nodes.next_report(1);
    CHECK(next.step.value == 4);
    CHECK(next.blocks[1].digest == front.blocks[1].digest);
  }
}

TEST_CASE("a sample that cannot be read is an error of the data", "[torch][runner]") {
  auto job = job_of();
  fleet nodes(job);
  nodes.add(1, std::make_unique<torn_data>(job, samples_of(job, {1}, 4)[1]));
  nodes.enter(make_layout({{{{1, 4}}, 6}}), {});
  auto failed = nodes.wait_for<core::runner_failed>(1);
  CHECK(failed.why.code == errc::data);
  CHECK_THAT(failed.why.text,
             Catch::Contains("micro-batch 4") && Catch::Contains("sample is torn"));
  nodes.at(1).halt();
  CHECK(nodes.wait_for<core::runner_halted>(1).now.blocks.size() == 4);
}

TEST_CASE("state comes from the next source when one does not hold it", "[torch][runner]") {
  holders_and_newcomer start;
  auto& nodes = start.nodes;
  nodes.add(4);
  auto plans = nodes.plan(newcomer_alone, {1});
  auto helper = plans.at(1);
  helper.missing.clear();
  helper.members.push_back({{{4}, {1}}, {}});
  plans.emplace(4, helper);
  for (auto& [n, p] : plans) p.members = helper.members;
  for (auto& m : plans.at(3).missing) m.holders.insert(m.holders.begin(), node_id{4});
  nodes.send(plans);
  nodes.wait_for<core::runner_prepared>(3);
  nodes.begin(plans);
  nodes.finish(start.expected);
}

TEST_CASE("state with another digest than its source says is not used", "[torch][runner]") {
  holders_and_newcomer start;
  auto& nodes = start.nodes;
  nodes.network().distort([](node_id from, const core::frame_header& h, std::byte* data) {
    if (h.kind == core::frame_kind::state && from.value == 1 && h.block == 2 && h.part == 1)
      data[0] ^= std::byte{1};
  });
  auto plans = nodes.plan(newcomer_alone, {1});
  for (auto& m : plans.at(3).missing) REQUIRE((m.holders == std::vector<node_id>{{1}, {2}}));
  SECTION("there is another source") {
    nodes.send(plans);
    nodes.wait_for<core::runner_prepared>(3);
    nodes.begin(plans);
    nodes.finish(start.expected);
  }
  SECTION("there is none") {
    for (auto& m : plans.at(3).missing) m.holders = {{1}};
    nodes.send(plans);
    auto failed = nodes.wait_for<core::runner_failed>(3);
    CHECK(failed.why.code == errc::damaged);
    CHECK(failed.suspect.value == 1);
    CHECK_THAT(failed.why.text, Catch::Contains("block 2") && Catch::Contains("node 1"));
  }
}

TEST_CASE("state comes from the next source when one breaks or is silent", "[torch][runner]") {
  auto job = job_of();
  bool silent = GENERATE(false, true);
  job.timeouts.prepare = std::chrono::seconds(silent ? 3 : 60);
  holders_and_newcomer start(job);
  auto& nodes = start.nodes;
  nodes.network().lose([](node_id from, node_id, const core::frame_header& h) {
    return h.kind == core::frame_kind::state && from.value == 1 && h.part >= 2;
  });
  auto plans = nodes.plan(newcomer_alone, {1});
  nodes.send(plans);
  nodes.wait_for<core::runner_prepared>(1);
  if (!silent) nodes.kill(1);
  CHECK(nodes.wait_for<core::runner_prepared>(3).blocks.size() == 4);
  if (!silent) plans.erase(1);
  nodes.begin(plans);
  nodes.finish(start.expected);
}

TEST_CASE("the last source that breaks is the suspect", "[torch][runner]") {
  holders_and_newcomer start;
  auto& nodes = start.nodes;
  nodes.network().lose([](node_id, node_id, const core::frame_header& h) {
    return h.kind == core::frame_kind::state;
  });
  auto plans = nodes.plan(newcomer_alone, {1});
  for (auto& m : plans.at(3).missing) m.holders = {{2}};
  nodes.send(plans);
  nodes.wait_for<core::runner_prepared>(2);
  nodes.kill(2);
  auto failed = nodes.wait_for<core::runner_failed>(3);
  CHECK(failed.suspect.value == 2);
  CHECK(failed.why.code == errc::unreachable);
}

TEST_CASE("a member of the layout that cannot be reached fails the preparation",
          "[torch][runner]") {
  fleet nodes(job_of());
  for (auto n : {1, 2}) nodes.add(static_cast<std::uint64_t>(n));
  auto plans = nodes.plan(two_stages, {});
  nodes.kill(2);
  nodes.at(1).get_ready(plans.at(1), {{1}, {1}});
  auto failed = nodes.wait_for<core::runner_failed>(1);
  CHECK(failed.suspect.value == 2);
  CHECK(failed.view == nodes.view());
}

TEST_CASE("a block that the plan calls missing is fetched although it is held", "[torch][runner]") {
  holders_and_newcomer start;
  auto& nodes = start.nodes;
  std::uint32_t sent = 0;
  nodes.network().lose([&](node_id from, node_id to, const core::frame_header& h) {
    if (h.kind == core::frame_kind::state && from.value == 2 && to.value == 1) ++sent;
    return false;
  });
  auto plans = nodes.plan(two_replicas, {1});
  CHECK(plans.at(1).missing.empty());
  plans.at(1).missing = {{1, {{2}}}};
  nodes.send(plans);
  for (auto n : {1, 2}) nodes.wait_for<core::runner_prepared>(static_cast<std::uint64_t>(n));
  nodes.network().lose({});
  CHECK(sent == 1 + 3 * 12);
  nodes.begin(plans);
  nodes.finish(start.expected);
}

TEST_CASE("a block that nobody has and no checkpoint either is an error", "[torch][runner]") {
  fleet nodes(job_of());
  nodes.add(1);
  auto plans = nodes.plan(make_layout({{{{1, 4}}, 6}}), {3});
  nodes.send(plans);
  auto failed = nodes.wait_for<core::runner_failed>(1);
  CHECK(failed.why.code == errc::internal);
  CHECK_THAT(failed.why.text, Catch::Contains("block 0") && Catch::Contains("step 3"));
}

TEST_CASE("a checkpoint that is damaged is named", "[torch][runner]") {
  auto job = job_of();
  fleet nodes(job);
  for (auto n : {1, 2}) nodes.add(static_cast<std::uint64_t>(n));
  put_checkpoint(nodes, [](block_runtime&) {});
  nodes.store().damage({2}, 3);
  auto plans = nodes.plan(two_stages, {2}, true);
  nodes.send(plans);
  nodes.wait_for<core::runner_prepared>(1);
  auto failed = nodes.wait_for<core::runner_failed>(2);
  CHECK(failed.why.code == errc::damaged);
  CHECK(failed.damaged_checkpoint.value == 2);
  CHECK(failed.suspect.value == 0);
  CHECK_THAT(failed.why.text, Catch::Contains("block 3"));
}

TEST_CASE("training goes on from a checkpoint, in another layout", "[torch][runner]") {
  auto job = job_of();
  expected_run expected(job);
  fleet before(job);
  before.add(1);
  before.enter(make_layout({{{{1, 4}}, 6}}), {});
  before.finish(expected);
  REQUIRE(before.store().count({2}) == 4);
  fleet after(job, 9);
  for (block_index b = 0; b < 4; ++b) after.store().put({2}, *before.store().load({2}, b));
  for (auto n : {1, 2}) after.add(static_cast<std::uint64_t>(n));
  after.enter(two_stages, {2}, true);
  after.finish(expected);
}

TEST_CASE("a view that starts from a step to be kept writes it when there is no checkpoint",
          "[torch][runner]") {
  holders_and_newcomer start;
  auto& nodes = start.nodes;
  nodes.enter(two_replicas, {1});
  nodes.decide(nodes.judge_round(start.expected));
  nodes.judge_round(start.expected);
  CHECK(nodes.store().count({2}) == 4);
  nodes.halt_all();
  for (auto n : {1, 2}) CHECK(nodes.standings[static_cast<std::uint64_t>(n)].applied.value == 2);
  bool known = GENERATE(false, true);
  nodes.enter(newcomer_alone, {2}, known);
  if (known)
    nodes.next_report(3);
  else
    CHECK(nodes.wait_for<core::runner_snapshot>(3).blocks.size() == 4);
}

}  // namespace shoal::engine::test
