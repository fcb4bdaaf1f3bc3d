#pragma once
// What the kernel has seen of a connection's way.

#include <chrono>

namespace shoal::transport {

/// The least round trip of the last minutes on the TCP connection `fd`, from the greeting on; 0
/// where the kernel does not say. Half of it is the way without queues and late acknowledgements.
std::chrono::nanoseconds least_round_trip(int fd);

}  // namespace shoal::transport
