#include "transport/link_meter.hpp"

#include <algorithm>
#include <cmath>

#include "base/robust_mean.hpp"

namespace shoal::transport {

void link_meter::begin(direction_class on, core::time_point now, std::uint64_t frame_bytes,
                       std::uint64_t here) {
  drop(on);
  if (frame_bytes < frame_bytes_min) return;
  if (!busy()) {
    since_ = now;
    bytes_ = here_ = 0;
  }
  here_ += std::min(here, frame_bytes);
  open_[static_cast<std::size_t>(on)] = true;
}

void link_meter::read(std::uint64_t bytes) {
  if (busy()) bytes_ += bytes;
}

void link_meter::end(direction_class on, core::time_point now) {
  auto& open = open_[static_cast<std::size_t>(on)];
  if (!open) return;
  take_sample(now);
  open = false;
}

void link_meter::drop(direction_class on) { open_[static_cast<std::size_t>(on)] = false; }

/// The next sample begins where this one ends, if the other connection still brings a frame: what
/// the kernel holds at that moment is about what it held before.
void link_meter::take_sample(core::time_point now) {
  auto seconds = std::chrono::duration<double>(now - since_).count();
  auto came = bytes_ - std::min(bytes_, here_);
  if (seconds > 0 && came >= frame_bytes_min / 2 && came >= bytes_ / 2) {
    seconds_a_byte_.push_back(seconds / static_cast<double>(came));
    if (seconds_a_byte_.size() > samples_max) seconds_a_byte_.pop_front();
  }
  since_ = now;
  bytes_ = here_ = 0;
}

std::uint64_t link_meter::bytes_per_s() const {
  if (seconds_a_byte_.size() < samples_min) return 0;
  auto mean = robust_mean({seconds_a_byte_.begin(), seconds_a_byte_.end()}).mean;
  return static_cast<std::uint64_t>(std::llround(std::min(1 / mean, 1e15)));
}

}  // namespace shoal::transport
