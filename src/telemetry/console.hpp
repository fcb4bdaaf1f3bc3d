#pragma once
// The screen of a run: one updating line on a terminal, plain lines elsewhere, events above it.

#include <cstdio>
#include <mutex>
#include <string>

#include "telemetry/words.hpp"

namespace shoal::telemetry {

/// How to write.
struct console_options {
  bool quiet = false;     ///< no progress, only errors
  bool terminal = false;  ///< rewrite one line
  bool color = false;
  unsigned width = 80;  ///< of the terminal
};

/// For `out`: a terminal if it is one; colours unless NO_COLOR is set or TERM is "dumb".
console_options console_options_for(std::FILE* out, bool quiet);

/// Thread-safe. Writes to `out`, which must outlive it; nothing is kept in buffers.
class console {
public:
  console(std::FILE* out, console_options options) : out_(out), options_(options) {}
  ~console() { close(); }
  console(const console&) = delete;
  console& operator=(const console&) = delete;

  /// A step was decided. On a terminal the line is rewritten; elsewhere a line is written for the
  /// first and last step, and between them at most two a second.
  void step(const progress& p, double time_s);
  /// Something happened. Stays on the screen. Empty: nothing that people need to know.
  void event(const std::string& sentence);
  /// Shown even when quiet.
  void error(const std::string& sentence);
  /// Ends the progress line, so that what follows begins on a line of its own.
  void close();

private:
  void line(const std::string& text);
  void clear();

  std::mutex mutex_;
  std::FILE* out_;
  console_options options_;
  bool open_ = false;  // the cursor stands at the end of a progress line
  double shown_at_ = 0;
};

}  // namespace shoal::telemetry
