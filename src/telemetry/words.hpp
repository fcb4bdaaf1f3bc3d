#pragma once
// Records as people read them. Pure functions from values to text.

#include <chrono>
#include <cstdint>
#include <string>

#include "telemetry/records.hpp"

namespace shoal::telemetry {

/// "912", "41.2k", "3.05M": three digits.
std::string short_number(double number);
/// "0.42 s", "3 min 12 s", "2 h 05 min".
std::string short_duration(double seconds);
/// A digest as 16 hexadecimal digits.
std::string hex_digest(std::uint64_t digest);

/// What a progress line shows.
struct progress {
  std::uint64_t step = 0;
  std::uint64_t steps = 0;
  core::decision what = core::decision::apply;
  double loss = 0;
  double gradient_norm = 0;
  double learning_rate = 0;
  double tokens_per_s = 0;  ///< 0: not yet known
  double left_s = -1;       ///< until the last step; negative: not yet known
  std::string layout;       ///< short_layout of it
};

/// "step  42/100  loss 3.1415  norm 0.52  lr 1.0e-03  41.2k tok/s  3 nodes: 2+1  12 s left".
std::string text_of(const progress& p);

/// The depths of the replicas: "3 nodes: 2+1"; "1 node".
std::string short_layout(const core::layout& shape);

/// "node 3 was lost: connection closed; 3 -> 2 nodes, 1 replica: 1:[0-2] 2:[3-5]; paused 0.42 s
/// (detect 0.01 s, ...)".
std::string text_of(const morph_record& morph);

/// The sentence for a value that was not finite: step, micro-batch, block, and what is done.
std::string text_of(const core::not_finite& where, std::uint64_t step, core::decision what);

/// Tokens a second and time left, from when steps were decided. Forgets what lies over a minute
/// back, so that both follow the present layout, and leaves pauses out of nothing: an ETA that did
/// not count them would be wrong under churn.
class pace {
public:
  /// `tokens_a_step`: N m seq_len.
  explicit pace(double tokens_a_step) : tokens_a_step_(tokens_a_step) {}
  /// Steps that do not grow (decided again) start the measurement anew.
  void add(std::uint64_t step, double time_s);
  /// 0 until two steps are known.
  double tokens_per_s() const { return tokens_a_step_ * steps_per_s(); }
  /// Until `steps`; negative until two steps are known.
  double left_s(std::uint64_t steps) const;

private:
  double steps_per_s() const;

  struct point {
    std::uint64_t step;
    double time_s;
  };
  double tokens_a_step_;
  std::vector<point> points_;
};

}  // namespace shoal::telemetry
