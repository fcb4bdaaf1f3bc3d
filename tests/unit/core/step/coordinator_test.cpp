#include "core/step/coordinator_machine.hpp"

#include <cmath>
#include <limits>

#include <catch2/catch.hpp>

#include "core/step/decide.hpp"

using namespace shoal;
using namespace shoal::core;

namespace {

constexpr time_point noon{};

/// Replica 0: nodes 1:[0-0] 2:[1-2], micro-batches 0..2. Replica 1: node 3:[0-2], 2..4.
coordinator_options options_of(replica_index replica) {
  coordinator_options o;
  o.job.training.steps = 3;
  o.job.training.micro_batches = 4;
  o.job.training.max_norm = 1;
  o.job.validation.every = 2;
  o.job.validation.micro_batches = 3;
  o.view = {5};
  o.shape.replicas = {{{{{1}, {0, 1}}, {{2}, {1, 3}}}, {0, 2}}, {{{{3}, {0, 3}}}, {2, 4}}};
  o.replica = replica;
  o.self = {o.shape.replicas[replica].stages[0].node, {1}};
  o.step = {0};
  return o;
}

stage_report report_of(std::uint64_t node, place at, index_range blocks, std::uint64_t step,
                       index_range losses = {}) {
  stage_report r;
  r.from = {{node}, {1}};
  r.view = {5};
  r.step = {step};
  r.at = at;
  for (auto b = blocks.begin; b < blocks.end; ++b) r.blocks.push_back({b, 100 + b, 4.0, 10, 20});
  for (auto g = losses.begin; g < losses.end; ++g) r.losses.push_back({g, 2.0 + g});
  return r;
}

replica_report second_replica(std::uint64_t step = 1) {
  replica_report r;
  r.from = {{3}, {1}};
  r.view = {5};
  r.step = {step};
  r.replica = 1;
  for (block_index b = 0; b < 3; ++b) r.blocks.push_back({b, 100 + b, 4.0, 30, 40});
  r.losses = {{2, 4.0}, {3, 5.0}};
  return r;
}

template <class T>
std::vector<T> all(const std::vector<coordinator_action>& actions) {
  std::vector<T> found;
  for (auto& a : actions)
    if (auto t = std::get_if<T>(&a)) found.push_back(*t);
  return found;
}

/// The lead with all reports of round 1 but the second replica's.
coordinator_machine waiting_lead(coordinator_options o = options_of(0)) {
  coordinator_machine lead(o);
  CHECK(lead.step(noon, report_of(1, {0, 0}, {0, 1}, 1)).empty());
  CHECK(lead.step(noon, report_of(2, {0, 1}, {1, 3}, 1, {0, 2})).empty());
  return lead;
}

}  // namespace

TEST_CASE("a coordinator joins its stages' reports in chain order for the lead", "[core][step]") {
  coordinator_machine c(options_of(1));
  auto actions = c.step(noon, report_of(3, {1, 0}, {0, 3}, 1, {2, 4}));
  REQUIRE(actions.size() == 1);
  auto told = all<tell_coordinator>(actions).at(0);
  CHECK(told.to == node_id{1});
  auto& joint = std::get<replica_report>(told.what);
  CHECK(joint.replica == 1);
  CHECK(joint.blocks.size() == 3);
  CHECK(joint.losses.size() == 2);
}

TEST_CASE("the lead decides when all stages of all replicas have their sums, and not before",
          "[core][step]") {
  auto lead = waiting_lead();
  auto actions = lead.step(noon, second_replica());
  auto coordinators = all<tell_coordinator>(actions);
  REQUIRE(coordinators.size() == 1);
  CHECK(coordinators[0].to == node_id{3});
  auto stages = all<tell_stage>(actions);
  REQUIRE(stages.size() == 2);
  CHECK(stages[0].to == node_id{1});
  CHECK(stages[1].to == node_id{2});
  auto d = std::get<decided>(all<tell_supervisor>(actions).at(0).what);
  CHECK(d.what == stages[0].what);
  CHECK(d.what.loss == f64((2.0 + 3.0 + 4.0 + 5.0) / 4));
  CHECK(d.what.gradient_norm == f64(std::sqrt(12.0)));
  CHECK(d.what.clip_factor == f64(1 / std::sqrt(12.0)));
  CHECK(d.what.what == decision::apply);
  CHECK_FALSE(d.what.last_of_view);
  CHECK(d.digest_before == model_digest({100, 101, 102}));
  CHECK(d.blocks[0].forward_us == 20);
  CHECK_FALSE(d.validation_loss);
}

TEST_CASE("a coordinator passes the lead's word to its own stages, once", "[core][step]") {
  coordinator_machine c(options_of(1));
  verdict word;
  word.view = {5};
  word.step = {1};
  CHECK(all<tell_stage>(c.step(noon, word)).at(0).to == node_id{3});
  CHECK(c.step(noon, word).empty());
  word.view = {4};
  word.step = {2};
  CHECK(c.step(noon, word).empty());
}

TEST_CASE("reports of another view, round, stage or node are dropped", "[core][step]") {
  auto lead = waiting_lead();
  auto stale = second_replica();
  stale.view = {4};
  CHECK(lead.step(noon, stale).empty());
  CHECK(lead.step(noon, second_replica(2)).empty());
  auto foreign = second_replica();
  foreign.from = {{7}, {1}};
  CHECK(lead.step(noon, foreign).empty());
  CHECK(lead.step(noon, report_of(9, {0, 1}, {1, 3}, 1, {0, 2})).empty());
  CHECK_FALSE(lead.step(noon, second_replica()).empty());
}

TEST_CASE("a report that does not fit its stage is trouble, not a wait for ever", "[core][step]") {
  auto check = [](stage_report wrong) {
    coordinator_machine lead(options_of(0));
    auto actions = lead.step(noon, wrong);
    REQUIRE(actions.size() == 1);
    CHECK(std::get<trouble>(all<tell_supervisor>(actions).at(0).what).peer == node_id{2});
    CHECK(lead.step(noon, report_of(1, {0, 0}, {0, 1}, 1)).empty());  // it is over
  };
  check(report_of(2, {0, 1}, {1, 2}, 1, {0, 2}));
  check(report_of(2, {0, 1}, {1, 3}, 1, {0, 1}));
  check(report_of(2, {0, 1}, {1, 3}, 1, {1, 3}));
}

TEST_CASE(
  "what all nodes' links were measured with becomes the median, and absurd figures stop nobody",
  "[core][step]") {
  auto median_of = [](link_figures first, link_figures second, std::vector<link_figures> rest) {
    coordinator_machine lead(options_of(0));
    auto a = report_of(1, {0, 0}, {0, 1}, 1), b = report_of(2, {0, 1}, {1, 3}, 1, {0, 2});
    a.links = first;
    b.links = second;
    lead.step(noon, a);
    lead.step(noon, b);
    auto other = second_replica();
    other.links = std::move(rest);
    auto told = all<tell_supervisor>(lead.step(noon, other));
    auto word = std::get_if<decided>(&told.at(0).what);
    return word != nullptr ? std::optional(word->links) : std::nullopt;
  };
  CHECK(median_of({5'000'000, 30'000}, {7'000'000, 10'000}, {{6'000'000, 20'000}}) ==
        link_figures{6'000'000, 20'000});
  CHECK(median_of({}, {7'000'000, 9'000}, {{UINT64_MAX, UINT64_MAX}}) ==
        link_figures{7'000'000, 9'000});
  CHECK(median_of({}, {}, {}) == link_figures{});
  CHECK_FALSE(median_of({}, {}, {{}, {}}));  // more than stages: its report does not fit

  coordinator_machine second(options_of(1));
  auto report = report_of(3, {1, 0}, {0, 3}, 1, {2, 4});
  report.links = {8'000'000, 40'000};
  auto told = all<tell_coordinator>(second.step(noon, report));
  CHECK(std::get<replica_report>(told.at(0).what).links ==
        std::vector<link_figures>{{8'000'000, 40'000}});
}

TEST_CASE("replicas that hold other bits are named, and nothing is decided", "[core][step]") {
  auto lead = waiting_lead();
  auto odd = second_replica();
  odd.blocks[1].digest = 7;
  auto actions = lead.step(noon, odd);
  REQUIRE(actions.size() == 1);
  auto d = std::get<diverged>(all<tell_supervisor>(actions)[0].what);
  CHECK(d.block == 1);
  CHECK(d.step == step_id{0});
  CHECK(d.odd == std::vector<node_id>{{2}, {3}});  // one against one
}

TEST_CASE("a value that is not finite stops the job or skips the step, as the job says",
          "[core][step]") {
  for (auto policy : {not_finite_policy::stop, not_finite_policy::skip}) {
    auto o = options_of(0);
    o.job.training.on_not_finite = policy;
    auto lead = waiting_lead(o);
    auto bad = second_replica();
    bad.losses[1].loss = std::numeric_limits<double>::quiet_NaN();
    auto d = std::get<decided>(all<tell_supervisor>(lead.step(noon, bad)).at(0).what);
    bool stops = policy == not_finite_policy::stop;
    CHECK(d.what.what == (stops ? decision::abort : decision::skip));
    CHECK(d.what.last_of_view == stops);
    REQUIRE(d.offence);
    CHECK(*d.offence == not_finite{3, 2});
  }
}

TEST_CASE("the first offence that any stage saw is the one that is reported", "[core][step]") {
  coordinator_machine lead(options_of(0));
  auto first = report_of(1, {0, 0}, {0, 1}, 1);
  first.offence = not_finite{1, 0};
  auto second = report_of(2, {0, 1}, {1, 3}, 1, {0, 2});
  second.offence = not_finite{0, 2};
  lead.step(noon, first);
  lead.step(noon, second);
  auto d = std::get<decided>(all<tell_supervisor>(lead.step(noon, second_replica())).at(0).what);
  CHECK(*d.offence == not_finite{0, 2});
  CHECK(d.what.what == decision::abort);
}

TEST_CASE("after a drain the next verdict is the view's last", "[core][step]") {
  auto lead = waiting_lead();
  CHECK(lead.step(noon, drain{{1}, {4}}).empty());
  CHECK(lead.step(noon, drain{{1}, {5}}).empty());
  auto d = std::get<decided>(all<tell_supervisor>(lead.step(noon, second_replica())).at(0).what);
  CHECK(d.what.last_of_view);
  CHECK(lead.step(noon, report_of(1, {0, 0}, {0, 1}, 2)).empty());
}

TEST_CASE("the closing round finishes the job, with its validation loss", "[core][step]") {
  auto o = options_of(0);
  o.step = {3};
  coordinator_machine lead(o);
  lead.step(noon, report_of(1, {0, 0}, {0, 1}, 4));
  auto last = report_of(2, {0, 1}, {1, 3}, 4);
  last.validation_losses = {{0, 1.0}, {1, 2.0}};
  lead.step(noon, last);
  auto other = second_replica(4);
  other.losses.clear();
  other.validation_losses = {{2, 6.0}};
  auto d = std::get<decided>(all<tell_supervisor>(lead.step(noon, other)).at(0).what);
  CHECK(d.what.what == decision::finish);
  CHECK(d.what.last_of_view);
  REQUIRE(d.validation_loss);
  CHECK(*d.validation_loss == f64(3.0));
}

TEST_CASE("a round that is decided again is decided alike", "[core][step]") {
  job_options job;
  job.training.micro_batches = 3;
  round_facts facts{{2}, {0.1, 0.2, 0.3}, {1e-3, 2e-3}, {}};
  CHECK(judge(job, facts).what == judge(job, facts).what);
  facts.losses[0] = 0.1000001;
  CHECK(judge(job, facts).what != judge(job, {{2}, {0.1, 0.2, 0.3}, {1e-3, 2e-3}, {}}).what);
}

TEST_CASE("a norm that overflows is not finite", "[core][step]") {
  job_options job;
  job.training.micro_batches = 1;
  auto made = judge(
    job,
    {{1}, {1.0}, {std::numeric_limits<double>::max(), std::numeric_limits<double>::max()}, {}});
  CHECK(made.what.what == decision::abort);
  CHECK_FALSE(made.offence);
}
