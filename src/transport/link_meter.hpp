#pragma once
// How fast frames come from one peer, from the times at which their bytes are read.
//
//   header of a large frame read          last byte of it read
//        |<------------------ one sample ------------------>|
//     bytes that were in the kernel by then do not count; all read until the end do
//
// What could make that wrong, and what is done about it:
//
//   * The kernel holds much of the frame already when its header is read (this thread was late, or
//     the frame was told `later`): reading it takes no time. Those bytes are subtracted, and a
//     frame of which more than half was here is no sample.
//   * Both connections of the peer bring frames at once and share the link: bytes of both count for
//     as long as one of them reads a large frame.
//   * The sender pauses in a frame (its thread was held up), the end is seen late: single samples
//     are too slow, a few too fast. Outliers are rejected, the rest averaged (robust_mean), in
//     seconds a byte, which is what the planner multiplies.
//   * Several peers at once share this node's interface: not corrected; it is what a peer gets.
//
// An emulated link is paced by its sender in small pieces (link_clock.hpp), so the same holds for
// it. Not measurable so: links of which a frame is in the kernel before its header is read, such as
// loopback, with small frames; they have no rate here, and need none.

#include <array>
#include <cstdint>
#include <deque>

#include "core/time.hpp"
#include "transport/frame.hpp"

namespace shoal::transport {

/// Of one peer. Pure: time is an argument. On the io thread.
class link_meter {
public:
  /// A shorter frame says more of the machine than of the link.
  static constexpr std::uint64_t frame_bytes_min = 64 << 10;
  static constexpr std::size_t samples_max = 32;  ///< newest; older ones are forgotten
  static constexpr std::size_t samples_min = 4;   ///< for an answer

  /// The payload of a frame of that size is read from now on; of its connection the kernel holds
  /// `here` bytes already. Nothing happens for a short frame.
  void begin(direction_class on, core::time_point now, std::uint64_t frame_bytes,
             std::uint64_t here);
  /// Bytes were read from the peer, of whatever.
  void read(std::uint64_t bytes);
  /// The frame is complete.
  void end(direction_class on, core::time_point now);
  /// The frame is not read to its end, or no more.
  void drop(direction_class on);

  /// 0: not known. Exactly one answer to the same calls.
  std::uint64_t bytes_per_s() const;

private:
  bool busy() const { return open_[0] || open_[1]; }
  void take_sample(core::time_point now);

  std::array<bool, direction_class_count> open_{};  // a large frame is being read
  core::time_point since_{};                        // the sample's beginning
  std::uint64_t bytes_ = 0;                         // read since
  std::uint64_t here_ = 0;                          // in the kernel before they were waited for
  std::deque<double> seconds_a_byte_;
};

}  // namespace shoal::transport
