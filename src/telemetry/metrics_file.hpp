#pragma once
// metrics.jsonl: one JSON object a line, for programs that follow a run.
//
//   {"step":12,"loss":3.1,"grad_norm":0.5,"lr":0.001,"view":2,"digest":"00ab...","time_s":1.7e9}
//   {"event":"morph","cause":"loss",...,"time_s":1.7e9}
//
// A step has one line, although it may be decided twice (after a loss of all its holders) and a
// supervisor may start anew in the middle: what the file has already is not written again. The
// line of a step waits for the next round, which tells the digest and validation loss of the
// weights that the step left. Step 0 is the initial weights.

#include <map>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/result.hpp"
#include "telemetry/records.hpp"

namespace shoal::telemetry {

/// One thread. Each line is handed to the system whole, so that a kill leaves no half line.
class metrics_file {
public:
  enum class mode { fresh, continued };
  /// Creates the file, or empties it when `fresh`, or goes on where it ends; a half line there,
  /// which a crash may have left, is cut off. `errc::no_permission`, `errc::no_space`, `errc::io`;
  /// `errc::foreign` when there is something else in it.
  static result<metrics_file> open(const std::string& path, mode how);

  metrics_file(metrics_file&&) noexcept;
  metrics_file& operator=(metrics_file&&) noexcept;
  /// Writes the step that still waits, without its digest.
  ~metrics_file();

  /// A round was decided. `errc::internal` when the weights before it had another digest when they
  /// were first written: same bits have been broken. Otherwise as `open`.
  result<void> step(const step_record& round);

  /// A morph or any other event; "event" and "time_s" are added to `fields`.
  result<void> morph(const morph_record& what, double time_s);
  result<void> event(const std::string& name, const nlohmann::ordered_json& fields, double time_s);

  /// The newest step that has a line, or is about to.
  std::uint64_t newest_step() const;

private:
  explicit metrics_file(int fd, std::string path);
  result<void> read_back();
  result<void> write(const nlohmann::ordered_json& line);
  result<void> write_text(const std::string& text);
  result<void> write_step(std::uint64_t step, const step_record* decided, const step_record* next);

  int fd_ = -1;
  std::string path_;
  std::map<std::uint64_t, std::string> written_;  // step -> digest in hex, empty when unknown
  std::optional<step_record> waiting_;
};

}  // namespace shoal::telemetry
