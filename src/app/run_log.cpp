#include "app/run_log.hpp"

namespace shoal::app {

namespace {

double seconds(core::nanoseconds t) { return std::chrono::duration<double>(t).count(); }

double tokens_a_step(const core::job_options& job) {
  return static_cast<double>(job.training.micro_batches) * job.training.micro_batch_size *
         job.model.seq_len;
}

const char* cause_of(const core::morph_timing& timing) {
  if (timing.lost > 0 || !timing.planned) return "loss";
  return timing.joined > 0 ? "arrival" : "leave";
}

const char* name_of(core::report_kind kind) {
  switch (kind) {
    case core::report_kind::joined:
      return "joined";
    case core::report_kind::lost:
      return "lost";
    case core::report_kind::leaving:
      return "leaving";
    case core::report_kind::holding:
      return "holding";
    case core::report_kind::morph:
      return "morph";
    case core::report_kind::stuck:
      return "stuck";
    case core::report_kind::diverged:
      return "diverged";
    case core::report_kind::checkpoint:
      return "checkpoint";
    case core::report_kind::supervisor:
      return "supervisor";
    case core::report_kind::trouble:
      return "trouble";
  }
  return "event";
}

}  // namespace

run_log::run_log(const core::job_options& job, telemetry::console& screen,
                 telemetry::metrics_file metrics, std::function<void(const step_info&)> hook)
  : job_(job),
    screen_(screen),
    metrics_(std::move(metrics)),
    hook_(std::move(hook)),
    pace_(tokens_a_step(job)) {}

void run_log::shape(const core::layout& now) {
  if (now == shape_) return;
  nodes_before_ = static_cast<std::uint32_t>(core::nodes_of(shape_).size());
  shape_ = now;
}

void run_log::step(const telemetry::step_record& round) {
  check(metrics_.step(round));
  if (round.offence) screen_.event(telemetry::text_of(*round.offence, round.step, round.what));
  if (hook_ && round.what != core::decision::abort)
    hook_({.step = round.step,
           .loss = round.loss,
           .gradient_norm = round.gradient_norm,
           .learning_rate = round.learning_rate,
           .skipped = round.what == core::decision::skip,
           .digest_before = round.digest_before,
           .validation_loss = round.validation_loss});
  if (round.validation_loss)
    screen_.event("validation loss " + std::to_string(*round.validation_loss) + " after step " +
                  std::to_string(round.step - 1));
  if (round.what == core::decision::finish || round.what == core::decision::abort) return;
  newest_ = round.step;
  pace_.add(round.step, round.time_s);
  screen_.step({.step = round.step,
                .steps = job_.training.steps,
                .what = round.what,
                .loss = round.loss,
                .gradient_norm = round.gradient_norm,
                .learning_rate = round.learning_rate,
                .tokens_per_s = pace_.tokens_per_s(),
                .left_s = pace_.left_s(job_.training.steps),
                .layout = shape_.replicas.empty() ? "" : telemetry::short_layout(shape_)},
               round.time_s);
}

void run_log::report(const core::report& what) {
  if (what.kind == core::report_kind::morph && what.timing) return morph(what);
  event(name_of(what.kind), {{"node", what.node.value}, {"text", what.text}}, what.text);
}

void run_log::morph(const core::report& what) {
  auto& t = *what.timing;
  telemetry::morph_record record{
    .cause = cause_of(t),
    .reason = what.text,
    .view = 0,
    .step = t.from.value,
    .nodes_before = nodes_before_,
    .nodes_after = static_cast<std::uint32_t>(core::nodes_of(shape_).size()),
    .layout = core::text_of(shape_),
    .moved_bytes = 0,
    .pause_s = seconds(t.pause),
    .parts_s = {{"detect", seconds(t.detect)},
                {"agree", seconds(t.agree)},
                {"rewire", seconds(t.rewire)},
                {"move", seconds(t.move)},
                {"redo", seconds(t.redo)}}};
  screen_.event(what.text);
  check(metrics_.morph(record, telemetry::unix_time_s()));
}

void run_log::event(const std::string& name, const nlohmann::ordered_json& fields,
                    const std::string& sentence) {
  if (!sentence.empty()) screen_.event(sentence);
  check(metrics_.event(name, fields, telemetry::unix_time_s()));
}

void run_log::check(const result<void>& written) {
  if (!written && written.error().code == errc::internal) same_bits_ = written;
  if (written || metrics_failed_ || !same_bits_) return;
  metrics_failed_ = true;
  screen_.error("metrics are no longer written: " + written.error().text);
}

}  // namespace shoal::app
