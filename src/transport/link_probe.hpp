#pragma once
// How long a message takes from one node to another, by its size: the link table of a profile.
//
// Two tensor planes of this process, connected over loopback TCP with the job's [emulate], send
// each other frames as nodes would: checked, hashed, from tensor memory to tensor memory. What is
// measured is from `send` to `arrived`.

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.hpp"
#include "base/robust_mean.hpp"
#include "core/job.hpp"

namespace shoal::transport {

/// Frames of one size.
struct link_time {
  std::uint64_t bytes = 0;
  robust_value seconds;  ///< one way
};

struct link_probe_options {
  /// Payloads to try, ascending.
  std::vector<std::uint64_t> sizes{4, 4 << 10, 64 << 10, 1 << 20, 16 << 20};
  std::uint32_t warm_up = 3;      ///< frames of each size that do not count
  std::uint32_t frames_max = 20;  ///< of each size that do, at most
  /// No further frame of a size once so much time went into it (three count at least).
  std::chrono::nanoseconds time_a_size = std::chrono::seconds(1);
  /// For one frame to arrive, and for the planes to connect.
  std::chrono::nanoseconds deadline = std::chrono::seconds(60);
};

/// Warms up, then repeats `once`, which says how many seconds it took, as the options say.
result<robust_value> measured(const link_probe_options& options,
                              const std::function<result<double>()>& once);

/// Measures. `errc::timeout` when a frame does not arrive in time, the plane's errors.
result<std::vector<link_time>> probe_loopback(const core::emulate_options& emulate,
                                              const link_probe_options& options = {});

}  // namespace shoal::transport
