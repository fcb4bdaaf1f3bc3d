// The trainer thread and its life cycle; see runner.hpp for the picture.

#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <ATen/ATen.h>

#include "base/assert.hpp"
#include "core/checkpoint/manifest.hpp"
#include "torch/errors.hpp"
#include "torch/runner/batches.hpp"
#include "torch/runner/holdings.hpp"
#include "torch/runner/inbox.hpp"
#include "torch/runner/round.hpp"
#include "torch/runner/runner.hpp"
#include "torch/runner/stage_facts.hpp"
#include "torch/runner/state_fetcher.hpp"
#include "torch/runner/state_server.hpp"
#include "torch/threads.hpp"

namespace shoal::engine {

namespace {

enum class phase : std::uint8_t { preparing, prepared, training, failed };

/// A view that is prepared or trained, until it is halted.
struct view_work {
  core::prepare plan;
  core::sender self;
  phase at = phase::preparing;
  bool opened = false;               // all peers are connected
  bool source_lost = false;          // a peer without a stage is not: `opened` will not come
  std::optional<stage_facts> facts;  // none: no place in the layout
  std::optional<state_fetcher> fetcher;
  std::optional<round> now;
  bool reported = false;  // the round
};

class trainer_thread final : public core::stage_runner {
public:
  explicit trainer_thread(runner_options options)
    : options_(std::move(options)),
      data_(options_.job, options_.data),
      server_(options_.job, options_.model, held_, options_.plane) {
    options_.plane.attach(inbox_);
    thread_ = std::thread([this] { run(); });
  }

  ~trainer_thread() override {
    inbox_.quit();
    thread_.join();
    options_.plane.detach();
  }

  void get_ready(core::prepare plan, core::sender self) override {
    inbox_.post(get_ready_order{std::move(plan), self});
  }
  void begin(view_id view) override { inbox_.post(begin_order{view}); }
  void decide(core::verdict what) override { inbox_.post(decide_order{what}); }
  void halt() override { inbox_.post(halt_order{}); }
  core::runner_progress progress() const override {
    std::lock_guard lock(progress_mutex_);
    return progress_;
  }

private:
  // -- the thread ---------------------------------------------------------------------------------

  void run() {
    configure_threads(options_.job.training);
    while (!inbox_.quitting()) {
      auto seen = inbox_.news();
      bool busy = false;
      guarded([&] { busy = turn(); });
      if (!busy) inbox_.wait(seen, deadline());
    }
    work_.reset();
  }

  /// One order or event, or one unit of work; false when there is none.
  bool turn() {
    if (auto event = inbox_.take_event()) {
      std::visit([&](auto& e) { on(e); }, *event);
      return true;
    }
    if (!work_) return false;
    if (work_->at == phase::preparing) return prepare_more();
    if (work_->at == phase::training) return train_more();
    return false;
  }

  /// Libraries throw; here it ends, as a failure of the view.
  template <class Work>
  void guarded(Work work) {
    try {
      work();
    } catch (const batches_error& e) {
      fail({errc::data, e.what()});
    } catch (const std::exception& e) {
      fail(in(where(), error_of(e)));
    }
  }

  std::string where() const {
    if (work_ && work_->now) return work_->now->where();
    return work_ ? "view " + std::to_string(work_->plan.view.value) : "no view";
  }

  std::optional<core::time_point> deadline() const {
    bool fetching = work_ && work_->at == phase::preparing && work_->fetcher;
    return fetching ? work_->fetcher->deadline() : std::nullopt;
  }

  void tell(core::runner_event event) { options_.sink(std::move(event)); }

  void fail(error why, node_id suspect = {}, step_id damaged_checkpoint = {}) {
    if (applying_) held_.restart({});  // some blocks may have taken the step, others not
    applying_ = false;
    if (!work_ || work_->at == phase::failed) return;
    bool trained = work_->at == phase::training;
    work_->now.reset();
    work_->at = phase::failed;
    held_.drop_unfinished_sums();
    if (trained) leave_view();  // while others get ready they may still want our blocks
    tell(core::runner_failed{work_->plan.view, std::move(why), suspect, damaged_checkpoint});
  }

  // -- halt ---------------------------------------------------------------------------------------

  void on(const halt_order&) {
    stop();
    tell(core::runner_halted{held_.standing()});
  }

  /// Ends whatever goes on; blocks and complete sums stay.
  void stop() {
    leave_view();
    work_.reset();
    held_.drop_unfinished_sums();
    note_progress();
  }

  void leave_view() {
    options_.plane.halt();
    inbox_.leave();
  }

  // -- getting ready ------------------------------------------------------------------------------

  void on(get_ready_order& order) {
    stop();
    work_.emplace();
    auto& w = *work_;
    w.plan = std::move(order.plan);
    w.self = order.self;
    auto block_count = static_cast<block_index>(options_.model.size());
    auto fits =
      core::check(w.plan.shape, block_count, options_.job.training.micro_batches, errc::protocol);
    if (!fits) return fail(fits.error());
    meet(w.plan);

    core::place at;
    if (core::find_place(w.plan.shape, w.self.node, at)) {
      auto runs = core::check_order(w.plan.shape, at.replica, options_.job, errc::protocol);
      if (!runs) return fail(runs.error());
      w.facts.emplace(options_.job, options_.model, w.plan.view, w.plan.shape, at);
      w.fetcher.emplace(state_fetcher::options{options_.job, options_.model, held_, inbox_,
                                               options_.plane, options_.store},
                        w.plan, w.facts->blocks());
    }
    enter_view();
    if (w.fetcher)
      w.fetcher->ask(std::chrono::steady_clock::now());
    else
      become_prepared();
  }

  /// Comes to the step that the view starts from, with what blocks are of use there.
  void meet(const core::prepare& plan) {
    auto& word = plan.roll_forward;
    bool rolls =
      word && word->step == plan.step && held_.applied().next() == plan.step && held_.has_sums();
    if (rolls) {
      server_.call_loans_in();
      apply(*word);
    }
    if (held_.applied() != plan.step) held_.restart(plan.step);
    if (word && word->step == plan.step) held_.set_last_verdict(word);
  }

  void enter_view() {
    auto& w = *work_;
    inbox_.enter(w.plan.view, w.plan.step, static_cast<std::uint32_t>(options_.model.size()));
    auto peers = w.plan.members;
    if (std::erase_if(peers, [&](auto& m) { return m.who == w.self; }) == 0)
      return;  // nobody needs us
    options_.plane.open(w.plan.view, w.self, std::move(peers), options_.job.timeouts.prepare);
    wake_peers();
  }

  /// Those that were told to wait may now be taken.
  void wake_peers() {
    for (auto node : inbox_.take_waiting()) options_.plane.resume(node);
  }

  bool prepare_more() {
    auto& w = *work_;
    auto did = w.fetcher->work(std::chrono::steady_clock::now());
    if (!did) {
      auto failure = w.fetcher->last_failure();
      fail(failure.why, failure.suspect, failure.damaged_checkpoint);
      return true;
    }
    if (*did) return true;
    if (!w.fetcher->complete() || !(w.opened || w.source_lost)) return false;
    become_prepared();
    return true;
  }

  void become_prepared() {
    auto& w = *work_;
    w.at = phase::prepared;
    auto blocks = held_.list();
    if (w.facts) {
      std::erase_if(blocks, [&](auto& b) { return !w.facts->blocks().contains(b.block); });
      open_round(w.plan.step.next());
    }
    tell(core::runner_prepared{w.plan.view, std::move(blocks)});
  }

  void on(const state_asked& asked) {
    if (!work_ || work_->plan.view != asked.view || work_->at == phase::training) return;
    server_.serve(asked.view, asked.from, asked.block);
  }

  void on(const view_opened& event) {
    if (work_ && work_->plan.view == event.view) work_->opened = true;
  }

  void on(const peer_broken& event) {
    if (!work_ || work_->plan.view != event.view || !work_->facts) return;
    if (work_->facts->is_member(event.peer))
      return fail(in("node " + std::to_string(event.peer.value), event.why), event.peer);
    work_->source_lost = true;
    work_->fetcher->lost(event.peer, event.why);
  }

  // -- training -----------------------------------------------------------------------------------

  void on(const begin_order& order) {
    if (!work_ || work_->at != phase::prepared || work_->plan.view != order.view) return;
    auto& w = *work_;
    if (!w.facts) {  // a spare
      held_.restart(w.plan.step);
      return stop();
    }
    held_.keep_only(w.facts->blocks());
    held_.drop_sums();
    server_.call_loans_in();
    w.at = phase::training;
    // Writers of the view before may be gone: who starts from a step that is to be kept writes it.
    if (w.plan.checkpoint != w.plan.step) give_snapshot();
    start_round(w.plan.step.next());
  }

  void open_round(step_id number) {
    inbox_.open_round(number, work_->facts->expected(number));
    wake_peers();
  }

  void start_round(step_id number) {
    auto& w = *work_;
    w.reported = false;
    w.now.emplace(*w.facts, data_, held_, inbox_, options_.plane, number);
    note_progress();
  }

  bool train_more() {
    auto& w = *work_;
    if (w.reported) return false;
    bool did = w.now->work();
    if (did) note_progress();
    if (w.now->complete()) {
      report();
      return true;
    }
    return did;
  }

  /// The frames of the next round may come as soon as a peer knows the verdict, before we do.
  void report() {
    auto& w = *work_;
    auto number = w.now->number();
    bool trained = number.value <= options_.job.training.steps;
    if (trained) held_.sums_complete();
    w.reported = true;
    auto report = w.now->report();
    if (trained) open_round(number.next());
    tell(core::runner_reported{std::move(report)});
  }

  void on(const decide_order& order) {
    auto& word = order.what;
    if (!work_ || work_->at != phase::training || !work_->reported) return;
    auto& w = *work_;
    if (word.view != w.plan.view || word.step != w.now->number()) return;
    bool counts = word.what == core::decision::apply || word.what == core::decision::skip;
    if (counts && word.step.value > options_.job.training.steps) return;
    if (counts) {
      apply(word);
      give_snapshot();
    }
    if (counts && !word.last_of_view) return start_round(word.step.next());
    stop();
    tell(core::runner_halted{held_.standing()});
  }

  void apply(const core::verdict& word) {
    applying_ = true;
    held_.apply(word);
    applying_ = false;
  }

  /// When weights of the present step are to be kept: the blocks that this node writes.
  void give_snapshot() {
    auto& w = *work_;
    auto step = held_.applied();
    if (step.value == 0 || !core::checkpoints_after(options_.job, step.value)) return;
    std::vector<block_index> mine;
    for (auto b : w.facts->blocks().all())
      if (core::writer_of(b, w.facts->replica_count()) == w.facts->at().replica) mine.push_back(b);
    if (!mine.empty()) tell(core::runner_snapshot{w.plan.view, step, held_.copies(mine)});
  }

  void note_progress() {
    std::lock_guard lock(progress_mutex_);
    if (work_ && work_->now)
      progress_ = {work_->plan.view, work_->now->number(), work_->now->actions_done()};
    else
      progress_ = {work_ ? work_->plan.view : progress_.view, held_.applied(), 0};
  }

  runner_options options_;
  batches data_;
  inbox inbox_;
  holdings held_;
  state_server server_;
  std::optional<view_work> work_;
  bool applying_ = false;

  mutable std::mutex progress_mutex_;
  core::runner_progress progress_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

std::unique_ptr<core::stage_runner> make_stage_runner(runner_options options) {
  return std::make_unique<trainer_thread>(std::move(options));
}

}  // namespace shoal::engine
