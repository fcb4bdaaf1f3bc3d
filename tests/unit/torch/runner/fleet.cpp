#include "unit/torch/runner/fleet.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <set>

#include "core/step/decide.hpp"

namespace shoal::engine::test {

using namespace std::chrono_literals;

core::layout make_layout(const std::vector<chain_of_nodes>& replicas) {
  core::layout shape;
  std::uint32_t g = 0;
  for (auto& r : replicas) {
    core::replica made;
    std::uint32_t block = 0;
    for (auto& [node, count] : r.stages) {
      made.stages.push_back({{node}, {block, block + count}});
      block += count;
    }
    made.micro_batches = {g, g + r.micro_batches};
    g += r.micro_batches;
    shape.replicas.push_back(std::move(made));
  }
  return shape;
}

std::vector<std::uint64_t> numbers_of(const core::layout& shape) {
  std::vector<std::uint64_t> numbers;
  for (auto node : core::nodes_of(shape)) numbers.push_back(node.value);
  return numbers;
}

expected_run::expected_run(const core::job_options& job) {
  auto model = must_make(job.model);
  small_data data(job);
  auto made = run_reference(job, model, data, [&](const step_info& info, const auto& before) {
    digests[info.step] = before;
    rounds[info.step] = info;
  });
  if (!made) FAIL(made.error().text);
  digests[job.training.steps + 1] = made->block_digests;
  last_validation = made->validation_loss;
}

// -- store ----------------------------------------------------------------------------------------

result<core::block_state> memory_store::load(step_id checkpoint, block_index block) {
  std::lock_guard lock(mutex_);
  auto found = states_.find({checkpoint, block});
  if (found == states_.end()) return error{errc::damaged, "no such block"};
  return found->second;
}

void memory_store::put(step_id step, core::block_state state) {
  std::lock_guard lock(mutex_);
  states_[{step, state.block}] = std::move(state);
}

void memory_store::damage(step_id step, block_index block) {
  std::lock_guard lock(mutex_);
  states_.at({step, block}).tensors[0].bytes.data[1] ^= std::byte{1};
}

std::set<step_id> memory_store::steps() const {
  std::lock_guard lock(mutex_);
  std::set<step_id> all;
  for (auto& [key, state] : states_) all.insert(key.first);
  return all;
}

std::size_t memory_store::count(step_id step) const {
  std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
    std::ranges::count_if(states_, [&](auto& s) { return s.first.first == step; }));
}

// -- nodes ----------------------------------------------------------------------------------------

fleet::fleet(const core::job_options& job, std::uint64_t seed)
  : job_(job), block_count_(must_make(job.model).size()), network_(seed) {}

fleet::~fleet() {
  for (auto& [number, n] : nodes_) n.runner.reset();
  network_.stop();
}

void fleet::add(std::uint64_t number, std::unique_ptr<dataset> data) {
  std::unique_lock lock(events_mutex_);
  auto& n = nodes_[number];
  lock.unlock();
  n.model = must_make(job_.model);
  n.data = data ? std::move(data) : std::make_unique<small_data>(job_);
  n.plane = network_.make_plane({number});
  n.runner = make_stage_runner(
    {job_, n.model, *n.data, *n.plane, store_, [this, &n](core::runner_event event) {
       std::lock_guard guard(events_mutex_);
       n.events.push_back(std::move(event));
       arrived_.notify_all();
     }});
}

void fleet::kill(std::uint64_t number) {
  network_.kill({number});
  nodes_.at(number).runner.reset();
  dead_.push_back(std::move(nodes_.at(number)));
  nodes_.erase(number);
  standings.erase(number);
}

core::runner_event fleet::next(std::uint64_t number) {
  std::unique_lock lock(events_mutex_);
  auto& events = nodes_.at(number).events;
  bool came = arrived_.wait_for(lock, 60s, [&] { return !events.empty(); });
  if (!came) {
    lock.unlock();
    auto complaints = network_.complaints();
    FAIL("node " << number << " says nothing; view " << view_.value << ", round " << round_.value
                 << (complaints.empty() ? "" : ": " + complaints[0]));
  }
  auto event = std::move(events.front());
  events.pop_front();
  return event;
}

core::member fleet::member_of(std::uint64_t number) const {
  return {{{number}, {1}}, {"", 1, static_cast<std::uint16_t>(number)}};
}

// -- views ----------------------------------------------------------------------------------------

std::optional<core::verdict> fleet::verdict_on(step_id step) const {
  for (auto& [number, s] : standings)
    if (s.applied == step && s.last_verdict && s.last_verdict->step == step) return s.last_verdict;
  return std::nullopt;
}

/// Who has a block at `step`, or will once it has rolled forward.
std::map<block_index, std::vector<node_id>> fleet::holders_at(step_id step) const {
  std::map<block_index, std::vector<node_id>> holders;
  bool rolling = verdict_on(step).has_value();
  for (auto& [number, s] : standings)
    if (s.applied == step || (rolling && s.applied.next() == step && s.has_sums))
      for (auto& b : s.blocks) holders[b.block].push_back({number});
  return holders;
}

std::map<std::uint64_t, core::prepare> fleet::plan(const core::layout& shape, step_id step,
                                                   bool checkpoint) {
  view_ = view_.next();
  core::prepare common;
  common.view = view_;
  common.step = step;
  common.shape = shape;
  common.checkpoint = checkpoint ? step : step_id{};
  common.roll_forward = verdict_on(step);
  auto holders = holders_at(step);
  std::set<std::uint64_t> involved;
  for (auto number : numbers_of(shape)) involved.insert(number);
  for (auto& [b, nodes] : holders)
    for (auto n : nodes) involved.insert(n.value);
  for (auto number : involved) common.members.push_back(member_of(number));

  std::map<std::uint64_t, core::prepare> plans;
  for (auto number : involved) {
    auto& p = plans[number] = common;
    core::place at;
    if (!core::find_place(shape, {number}, at)) continue;
    for (auto b : shape.replicas[at.replica].stages[at.stage].blocks.all()) {
      auto& h = holders[b];
      if (std::ranges::find(h, node_id{number}) != h.end()) continue;
      p.missing.push_back({b, h});
    }
  }
  return plans;
}

void fleet::send(const std::map<std::uint64_t, core::prepare>& plans) {
  for (auto& [number, p] : plans) at(number).get_ready(p, {{number}, {1}});
}

void fleet::begin(const std::map<std::uint64_t, core::prepare>& plans) {
  auto& any = plans.begin()->second;
  shape_ = any.shape;
  round_ = any.step.next();
  network_.mark();
  for (auto& [number, p] : plans) at(number).begin(p.view);
}

void fleet::enter(const core::layout& shape, step_id step, bool checkpoint) {
  auto plans = plan(shape, step, checkpoint);
  send(plans);
  for (auto& [number, p] : plans) {
    auto ready = wait_for<core::runner_prepared>(number);
    REQUIRE(ready.view == view_);
    core::place at;
    if (core::find_place(shape, {number}, at))
      REQUIRE(ready.blocks.size() == shape.replicas[at.replica].stages[at.stage].blocks.size());
  }
  begin(plans);
}

void fleet::halt_all() {
  for (auto& [number, n] : nodes_) n.runner->halt();
  for (auto& [number, n] : nodes_)
    for (;;) {
      auto event = next(number);
      if (auto snapshot = std::get_if<core::runner_snapshot>(&event)) check_snapshot(*snapshot);
      if (auto halted = std::get_if<core::runner_halted>(&event)) {
        standings[number] = halted->now;
        if (expected_ != nullptr)
          for (auto& b : halted->now.blocks)
            CHECK(b.digest == expected_->digests.at(halted->now.applied.value + 1)[b.block]);
        break;
      }
    }
}

fleet::meeting fleet::find_meeting() const {
  std::set<step_id> steps;
  for (auto& [number, s] : standings)
    if (!s.blocks.empty()) steps.insert(s.applied);
  auto saved = store_.steps();
  auto checkpoint = std::ranges::find_if(saved.rbegin(), saved.rend(),
                                         [&](auto s) { return store_.count(s) == block_count_; });
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    if (holders_at(*step).size() == block_count_)
      return {*step, checkpoint != saved.rend() && *checkpoint == *step};
  if (checkpoint == saved.rend()) return {};
  return {*checkpoint, true};
}

void fleet::wait_for_frames(std::uint64_t count) {
  if (round_.value <= job_.training.steps) REQUIRE(network_.wait_for_frames(count));
}

// -- rounds ---------------------------------------------------------------------------------------

void fleet::check_snapshot(const core::runner_snapshot& snapshot) {
  for (auto& b : snapshot.blocks) {
    if (expected_ != nullptr)
      CHECK(b.digest == expected_->digests.at(snapshot.step.value + 1)[b.block]);
    store_.put(snapshot.step, b);
  }
}

core::stage_report fleet::next_report(std::uint64_t number) {
  for (;;) {
    auto event = next(number);
    if (auto snapshot = std::get_if<core::runner_snapshot>(&event)) {
      check_snapshot(*snapshot);
      continue;
    }
    if (auto failed = std::get_if<core::runner_failed>(&event))
      FAIL("node " << number << ": " << failed->why.text);
    REQUIRE(std::holds_alternative<core::runner_reported>(event));
    return std::get<core::runner_reported>(event).report;
  }
}

core::verdict fleet::judge_round(const expected_run& expected) {
  expected_ = &expected;
  INFO("view " << view_.value << ", round " << round_.value << ", " << core::text_of(shape_));
  core::round_facts facts;
  facts.step = round_;
  std::vector<double> validation;
  std::map<block_index, core::block_report> blocks;
  auto& digests = expected.digests.at(round_.value);
  for (auto& r : shape_.replicas)
    for (auto& s : r.stages) {
      auto report = next_report(s.node.value);
      REQUIRE(report.view == view_);
      REQUIRE(report.step == round_);
      for (auto& b : report.blocks) {
        CHECK(b.digest == digests[b.block]);
        auto [other, fresh] = blocks.emplace(b.block, b);
        if (!fresh) CHECK(other->second.squared_norm == b.squared_norm);
      }
      for (auto& l : report.losses) facts.losses.push_back(l.loss.value());
      for (auto& l : report.validation_losses) validation.push_back(l.loss.value());
      if (report.offence && (!facts.offence || *report.offence < *facts.offence))
        facts.offence = report.offence;
    }
  for (auto& [index, b] : blocks) facts.squared_norms.push_back(b.squared_norm.value());
  REQUIRE(blocks.size() == block_count_);
  auto made = core::judge(job_, facts).what;
  made.view = view_;
  made.last_of_view = made.what == core::decision::finish || made.what == core::decision::abort;
  auto due = expected.last_validation;
  if (auto info = expected.rounds.find(round_.value); info != expected.rounds.end()) {
    CHECK(made.loss == f64(info->second.loss));
    CHECK(made.gradient_norm == f64(info->second.gradient_norm));
    due = info->second.validation_loss;
  }
  REQUIRE(due.has_value() == !validation.empty());
  if (due) CHECK(f64(core::validation_mean(validation)) == f64(*due));
  return made;
}

void fleet::decide(const core::verdict& word, const std::vector<std::uint64_t>& nodes) {
  network_.mark();
  for (auto number : nodes) at(number).decide(word);
}

void fleet::decide(const core::verdict& word) {
  decide(word, numbers_of(shape_));
  round_ = word.step.next();
}

void fleet::finish(const expected_run& expected) {
  for (;;) {
    auto word = judge_round(expected);
    decide(word);
    if (!word.last_of_view) continue;
    for (auto number : numbers_of(shape_)) {
      auto standing = wait_for<core::runner_halted>(number).now;
      CHECK(standing.applied.value == job_.training.steps);
      for (auto& b : standing.blocks)
        CHECK(b.digest == expected.digests.at(job_.training.steps + 1)[b.block]);
      standings[number] = standing;
    }
    break;
  }
  CHECK(network_.complaints().empty());
}

}  // namespace shoal::engine::test
