#pragma once
// The pace of an emulated link: when may the bytes of a frame that is handed over now leave?
//
//   hand over   |<-- waits for frames before -->|<-- delay -->|<-- bytes / rate -->|
//                                                         first byte           last byte
//
// One link carries everything from one node to another, both direction classes, in order of
// handing over. What is emulated is the time at which bytes are given to the real network, those of
// a large frame piece by piece, so that its receiver sees them come at the rate: neither loss, nor
// sharing of a link by several pairs, nor the greeting of connections.

#include <chrono>
#include <cstdint>

#include "base/units.hpp"
#include "core/time.hpp"

namespace shoal::transport {

/// When the first and the last byte of a frame may be written.
struct passage {
  core::time_point first;
  core::time_point last;
  friend bool operator==(const passage&, const passage&) = default;
};

/// Pure: time is an argument. Never blocks, never sleeps.
class link_clock {
public:
  /// `rate` 0 is unlimited.
  link_clock(byte_rate rate, std::chrono::nanoseconds delay) : rate_(rate), delay_(delay) {}

  /// Puts a frame of `bytes` on the link and says when it may be written: never before a frame put
  /// on it earlier. Without rate and delay that is `now`.
  passage put(core::time_point now, std::uint64_t bytes);

  /// Everything on the link was dropped: it is free.
  void clear() { free_at_ = {}; }

private:
  byte_rate rate_;
  std::chrono::nanoseconds delay_;
  core::time_point free_at_{};
};

}  // namespace shoal::transport
