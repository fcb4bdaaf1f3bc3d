#include "core/morph/morph_clock.hpp"

#include <algorithm>

namespace shoal::core {

void morph_clock::begin(time_point now, std::optional<time_point> last_sign, bool planned) {
  if (on_) {
    present_.planned = present_.planned && planned;
    return;
  }
  auto lost_meanwhile = present_.lost;
  present_ = {};
  present_.lost = lost_meanwhile;
  present_.planned = planned;
  present_.detect = last_sign ? std::max<nanoseconds>(now - *last_sign, 0ns) : 0ns;
  on_ = true;
  trained_before_ = newest_.value != 0;
  began_ = now;
}

void morph_clock::agreed(time_point now, step_id from, std::uint64_t moved_blocks,
                         std::uint32_t joined) {
  agreed_ = connected_ = now;
  present_.from = from;
  present_.moved_blocks = moved_blocks;
  present_.joined = joined;
}

void morph_clock::committed(time_point now) { committed_ = now; }

std::optional<morph_timing> morph_clock::decided(time_point now, step_id step) {
  std::optional<morph_timing> timing;
  auto gap = now - last_decided_;
  if (on_) {
    if (step <= newest_) return std::nullopt;  // still redoing what was done before
    on_ = false;
    present_.agree = agreed_ - began_;
    present_.rewire = connected_ - agreed_;
    present_.move = committed_ - connected_;
    present_.redo = std::max<nanoseconds>(now - committed_ - usual_step_, 0ns);
    present_.pause = std::max<nanoseconds>(gap - usual_step_, 0ns);
    if (trained_before_) timing = present_;
    present_ = {};
  } else if (newest_.value != 0) {
    usual_step_ = usual_step_ == 0ns ? nanoseconds(gap) : usual_step_ + (gap - usual_step_) / 4;
  }
  newest_ = std::max(newest_, step);
  last_decided_ = now;
  return timing;
}

}  // namespace shoal::core
