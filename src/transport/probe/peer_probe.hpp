#pragma once
// How long a message takes to another machine and back, by its size.
//
// No two clocks agree, so only round trips are measured, all on this machine's clock:
//
//   small    4 bytes there, 4 back    its half is what the smallest message takes, either way
//   there    n bytes there, 4 back    less half of the small one: n bytes there
//   back     4 bytes there, n back    less half of the small one: n bytes back
//
// A link whose two ways differ in latency cannot be told from one with the mean of both; that its
// ways differ in rate is seen. The other end runs probe_answerer.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/job.hpp"
#include "transport/link_probe.hpp"

namespace shoal::transport {

struct peer_times {
  std::string here;  ///< address of this end, as the peer sees it or its router
  std::vector<link_time> there, back;
};

struct peer_probe_options {
  std::uint64_t job = 0;  ///< digest, the same at both ends
  core::emulate_options emulate;
  link_probe_options probe;  ///< its first size is the small message
};

/// Measures the link to the answerer at host:port, a literal address. All errors name the peer and
/// what to do: `errc::unreachable`, `timeout`, `refused`, `foreign`, `protocol`, `damaged`.
result<peer_times> probe_peer(const std::string& host, std::uint16_t port,
                              const peer_probe_options& options);

}  // namespace shoal::transport
