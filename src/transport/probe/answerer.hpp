#pragma once
// The other end of a probe: sends back as many bytes as it is asked to.
//
// One asker at a time, so that they do not disturb one another's figures; others wait in the
// kernel's backlog. Nothing of an asker is believed: it must greet as a probe of the same job
// within seconds, sizes are bounded before memory is taken, and it is sent away when it is silent
// or takes too long.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/job.hpp"
#include "core/time.hpp"
#include "transport/tcp_plane.hpp"

namespace shoal::transport {

struct answerer_options {
  std::uint64_t job = 0;  ///< digest: askers with another are refused
  core::emulate_options emulate;
  std::chrono::nanoseconds hello_timeout = std::chrono::seconds(5);
  /// Of an asker: for the next request, and for the bytes of one.
  std::chrono::nanoseconds silence_max = std::chrono::seconds(60);
  std::chrono::nanoseconds visit_max = std::chrono::minutes(10);
  /// Told of each asker that went or was sent away, in whole sentences.
  std::function<void(const std::string&)> log;
};

class probe_answerer {
public:
  probe_answerer(answerer_options options, listening_port at);
  ~probe_answerer();

  std::uint16_t port() const;
  /// Answers until then, or until `stop`; an asker that is there at the end is sent away.
  /// `errc::io` when no connection can be taken any more.
  result<void> run(core::time_point until);
  /// From any thread.
  void stop();

private:
  class impl;  // sockets stay inside this folder
  std::unique_ptr<impl> impl_;
};

}  // namespace shoal::transport
