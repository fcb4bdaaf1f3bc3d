#pragma once
// The tensor plane between nodes of one process, for tests: the same promises as TCP, no sockets.
//
//   hub ----- plane (port 1) ---- sink      a hub is the network and all its machines' io threads;
//      '----- plane (port 2) ---- sink      planes find one another by `endpoint::tensor_port`,
//      '----- plane (port 3) ---- sink      the host is not looked at
//
// With `pace::pumped` nothing happens until the test says so, one thread does everything, and the
// same calls give the same deliveries in the same order.

#include <chrono>
#include <cstdint>
#include <memory>

#include "core/ports.hpp"

namespace shoal::transport {

class memory_network;

class memory_hub {
public:
  enum class pace : std::uint8_t {
    threaded,  ///< a thread of the hub's delivers at once; deadlines are real
    pumped,    ///< deliveries happen in `pump`, time passes in `advance`
  };
  struct options {
    pace how = pace::threaded;
    std::uint64_t frame_bytes_max = 1ull << 30;
    std::uint64_t queue_bytes_max = 4ull << 30;  ///< as in tcp_options
  };

  explicit memory_hub(options opts);
  ~memory_hub();

  /// A machine on the network, with a port of its own; the network lives as long as one of its
  /// planes. Destroying it is its death: peers that count on it see `broken`.
  std::unique_ptr<core::tensor_plane> make_plane();

  /// Pumped only: delivers all there is to deliver, and what follows from it; returns the number of
  /// steps taken.
  std::size_t pump();
  /// Pumped only: lets time pass, then pumps.
  std::size_t advance(std::chrono::nanoseconds time);

private:
  std::shared_ptr<memory_network> network_;  // shared with the planes
};

}  // namespace shoal::transport
