#pragma once
// Turns what the supervisor's machine, or the reference, tells into what people and programs read:
// the screen, the metrics file, the hook of a trainer.

#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "core/job.hpp"
#include "core/morph/supervisor_io.hpp"
#include "shoal/trainer.hpp"
#include "telemetry/console.hpp"
#include "telemetry/metrics_file.hpp"

namespace shoal::app {

/// One thread at a time. A metrics file that cannot be written is told once and then given up:
/// training is worth more than its log. But for one thing: weights that differ from those told
/// before.
class run_log {
public:
  run_log(const core::job_options& job, telemetry::console& screen, telemetry::metrics_file metrics,
          std::function<void(const step_info&)> hook);

  /// The layout in force from now on, for the progress line; its size before counts for morphs.
  void shape(const core::layout& now);

  void step(const telemetry::step_record& round);
  void report(const core::report& what);
  /// Something that only this program knows: a process started, ended, was signalled.
  void event(const std::string& name, const nlohmann::ordered_json& fields,
             const std::string& sentence);

  std::uint64_t newest_step() const { return newest_; }
  /// `errc::internal` once weights of a step were told that differ from those told before.
  const result<void>& same_bits() const { return same_bits_; }

private:
  void morph(const core::report& what);
  void check(const result<void>& written);

  const core::job_options& job_;
  telemetry::console& screen_;
  telemetry::metrics_file metrics_;
  std::function<void(const step_info&)> hook_;
  telemetry::pace pace_;
  core::layout shape_;
  std::uint32_t nodes_before_ = 0;
  std::uint64_t newest_ = 0;
  bool metrics_failed_ = false;
  result<void> same_bits_;
};

}  // namespace shoal::app
