#include "layout/trial.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <utility>
#include <variant>

#include "base/assert.hpp"
#include "core/step/coordinator_machine.hpp"
#include "torch/reference.hpp"
#include "torch/runner/runner.hpp"
#include "transport/memory_plane.hpp"
#include "unit/torch/helpers.hpp"

namespace shoal::test {

using engine::test::must_make;
using engine::test::small_data;

expected_run::expected_run(const core::job_options& job) {
  auto model = must_make(job.model);
  small_data data(job);
  auto made = engine::run_reference(job, model, data, [&](auto& info, auto& before) {
    digests.push_back(before);
    rounds.push_back(info);
  });
  if (!made) FAIL(made.error().text);
  digests.push_back(made->block_digests);
  last_validation = made->validation_loss;
}

namespace {

constexpr view_id the_view{1};
constexpr incarnation_id first_life{1};

/// A trial from initial values needs no checkpoint.
class no_store final : public core::block_store {
public:
  result<core::block_state> load(step_id, block_index) override {
    return error{errc::internal, "a block was asked of a checkpoint, and there is none"};
  }
};

/// What runners say, in the order in which it comes.
class mailbox {
public:
  using letter = std::pair<node_id, core::runner_event>;
  void put(node_id from, core::runner_event what) {
    std::lock_guard lock(mutex_);
    letters_.emplace_back(from, std::move(what));
    arrived_.notify_one();
  }
  /// Nothing when none comes within a minute.
  std::optional<letter> take() {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_for(lock, std::chrono::minutes(1), [&] { return !letters_.empty(); }))
      return std::nullopt;
    auto first = std::move(letters_.front());
    letters_.pop_front();
    return first;
  }

private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<letter> letters_;
};

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  out.precision(17);
  (out << ... << parts);
  return out.str();
}

class trial {
public:
  trial(const core::job_options& job, const core::layout& shape, const expected_run& expected);
  std::optional<std::string> run();

private:
  struct node {
    chain model;
    std::unique_ptr<small_data> data;
    std::unique_ptr<core::tensor_plane> plane;
    std::unique_ptr<core::stage_runner> runner;  // ends before its plane
  };

  void add(node_id id);
  void get_ready();
  void on(node_id from, const core::runner_prepared& ready);
  void on(node_id from, const core::runner_failed& failure);
  void on(node_id from, core::runner_reported& what);
  void on(node_id from, const core::runner_snapshot& what);
  void on(node_id from, const core::runner_halted& what);
  void coordinate(replica_index replica, const core::coordinator_event& event);
  void on(const core::decided& what);
  void on(const core::diverged& what);
  void on(const core::trouble& what) { differs("the lead gives up: " + what.reason); }
  void check_digest(node_id from, step_id after, block_index block, std::uint64_t digest);
  void check_bits(step_id round, const char* what, double is, double due);
  void differs(std::string sentence);

  const core::job_options& job_;
  const core::layout& shape_;
  const expected_run& expected_;
  no_store store_;
  mailbox mail_;
  transport::memory_hub hub_;
  std::map<node_id, node> nodes_;
  std::vector<core::coordinator_machine> coordinators_;
  std::size_t ready_ = 0;
  std::size_t halted_ = 0;
  std::uint64_t decided_ = 0;
  std::optional<std::string> difference_;
};

trial::trial(const core::job_options& job, const core::layout& shape, const expected_run& expected)
  : job_(job), shape_(shape), expected_(expected), hub_({}) {
  for (auto id : core::nodes_of(shape)) add(id);
  for (replica_index r = 0; r < shape.replicas.size(); ++r) {
    core::sender self{shape.replicas[r].stages[0].node, first_life};
    coordinators_.emplace_back(core::coordinator_options{job, the_view, self, shape, r, {}});
  }
}

void trial::add(node_id id) {
  auto& n = nodes_[id];
  n.model = must_make(job_.model);
  n.data = std::make_unique<small_data>(job_);
  n.plane = hub_.make_plane();
  n.runner = engine::make_stage_runner({job_, n.model, *n.data, *n.plane, store_,
                                        [this, id](auto what) { mail_.put(id, std::move(what)); }});
}

std::optional<std::string> trial::run() {
  get_ready();
  while (!difference_ && halted_ < nodes_.size()) {
    auto letter = mail_.take();
    if (!letter)
      return text("no runner has said anything for a minute; rounds decided: ", decided_);
    std::visit([&](auto& what) { on(letter->first, what); }, letter->second);
  }
  if (!difference_ && decided_ != job_.training.steps + 1)
    differs(text("the view ended after ", decided_, " rounds"));
  return difference_;
}

void trial::get_ready() {
  core::prepare common;
  common.term = {1};
  common.view = the_view;
  common.shape = shape_;
  for (auto& [id, n] : nodes_)
    common.members.push_back({{id, first_life}, {"", 1, n.plane->port()}});
  for (auto& replica : shape_.replicas)
    for (auto& stage : replica.stages) {
      auto plan = common;
      for (auto b : stage.blocks.all()) plan.missing.push_back({b, {}});
      nodes_.at(stage.node).runner->get_ready(plan, {stage.node, first_life});
    }
}

// -- what runners say -----------------------------------------------------------------------------

void trial::on(node_id from, const core::runner_prepared& ready) {
  for (auto& b : ready.blocks) check_digest(from, {}, b.block, b.digest);
  if (++ready_ < nodes_.size()) return;
  for (auto& [id, n] : nodes_) n.runner->begin(the_view);
}

void trial::on(node_id from, const core::runner_failed& failure) {
  differs(text("node ", from.value, " fails: ", failure.why.text));
}

void trial::on(node_id from, core::runner_reported& what) {
  auto& report = what.report;
  report.from = {from, first_life};  // as its NODE would
  for (auto& b : report.blocks) check_digest(from, report.step.before(), b.block, b.digest);
  coordinate(report.at.replica, report);
}

void trial::on(node_id from, const core::runner_snapshot& what) {
  for (auto& b : what.blocks) check_digest(from, what.step, b.block, b.digest);
}

void trial::on(node_id from, const core::runner_halted& what) {
  ++halted_;
  if (what.now.applied.value != job_.training.steps)
    differs(text("node ", from.value, " ends at step ", what.now.applied.value));
  for (auto& b : what.now.blocks) check_digest(from, what.now.applied, b.block, b.digest);
}

// -- what coordinators say ------------------------------------------------------------------------

void trial::coordinate(replica_index replica, const core::coordinator_event& event) {
  auto number_of = [&](node_id leader) {
    core::place at;
    SHOAL_ASSERT(core::find_place(shape_, leader, at) && at.stage == 0);
    return at.replica;
  };
  for (auto& action : coordinators_.at(replica).step({}, event)) {
    if (auto* tell = std::get_if<core::tell_coordinator>(&action))
      std::visit([&](auto& what) { coordinate(number_of(tell->to), what); }, tell->what);
    else if (auto* order = std::get_if<core::tell_stage>(&action))
      nodes_.at(order->to).runner->decide(order->what);
    else
      std::visit([&](auto& what) { on(what); }, std::get<core::tell_supervisor>(action).what);
  }
}

void trial::on(const core::decided& what) {
  auto round = what.what.step;
  if (round.value != ++decided_)
    return differs(text("round ", round.value, " is decided as number ", decided_));
  bool closing = round.value > job_.training.steps;
  if (what.what.what != (closing ? core::decision::finish : core::decision::apply))
    return differs(text("round ", round.value, " is decided otherwise"));
  auto due = expected_.last_validation;
  if (!closing) {
    auto& info = expected_.rounds.at(round.value - 1);
    check_bits(round, "loss", what.what.loss.value(), info.loss);
    check_bits(round, "gradient norm", what.what.gradient_norm.value(), info.gradient_norm);
    check_bits(round, "learning rate", what.what.learning_rate.value(), info.learning_rate);
    due = info.validation_loss;
  }
  if (what.digest_before != core::model_digest(expected_.digests.at(round.value - 1)))
    differs(text("step ", round.value - 1, ": the digest of the model"));
  if (due.has_value() != what.validation_loss.has_value())
    return differs(
      text("step ", round.value - 1, ": a validation loss where none is due, or none"));
  if (due) check_bits(round, "validation loss", what.validation_loss->value(), *due);
}

void trial::on(const core::diverged& what) {
  differs(text("step ", what.step.value, ", block ", what.block, ": replicas hold different bits"));
}

// -- comparison -----------------------------------------------------------------------------------

void trial::check_digest(node_id from, step_id after, block_index block, std::uint64_t digest) {
  if (digest == expected_.digests.at(after.value).at(block)) return;
  differs(text("step ", after.value, ", block ", block, ": the digest on node ", from.value));
}

void trial::check_bits(step_id round, const char* what, double is, double due) {
  if (f64(is) == f64(due)) return;
  differs(text("round ", round.value, ": the ", what, " is ", is, ", expected ", due));
}

/// Only the first one counts: what follows, follows from it.
void trial::differs(std::string sentence) {
  if (!difference_) difference_ = std::move(sentence);
}

}  // namespace

std::optional<std::string> first_difference(const core::job_options& job, const core::layout& shape,
                                            const expected_run& expected) {
  return trial(job, shape, expected).run();
}

}  // namespace shoal::test
