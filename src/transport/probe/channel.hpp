#pragma once
// One connection between two probes: blocking calls, each with a deadline. The bytes are those of
// the tensor plane (hello.hpp, frame.hpp), but here frames flow both ways:
//
//   asker  -- hello -->               <-- accepted, or why not --  answerer
//          -- frame of n bytes, `part` = m -->   <-- frame of m bytes --
//          ...                                   -- farewell -->
//
// Frames are hashed by both ends piece by piece, and paced as [emulate] says, as nodes do it. In
// place of a frame the answerer may send an answer (hello.hpp) that says why it closes.

#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/job.hpp"
#include "core/time.hpp"
#include "transport/hello.hpp"
#include "transport/link_clock.hpp"
#include "transport/probe/terms.hpp"
#include "transport/tcp/socket.hpp"
#include "transport/wire.hpp"

namespace shoal::transport {

/// Runs one asynchronous operation at a time, to its end or the deadline. All but `stop` from one
/// thread.
class patient_io {
public:
  using handler = std::function<void(asio::error_code)>;

  asio::io_context& context() { return io_; }
  /// `begin` starts an operation that calls its handler once, `cancel` ends it early. The
  /// operation's error; timed_out at the deadline; operation_aborted after `stop`.
  asio::error_code wait(core::time_point until, const std::function<void(handler)>& begin,
                        const std::function<void()>& cancel);
  /// Whatever waits ends soon, and so does everything after. From any thread.
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

private:
  asio::io_context io_{1};
  std::atomic<bool> stopped_ = false;
};

/// Errors: `errc::timeout`, `unreachable` (closed, reset, nobody there), `protocol` and `damaged`
/// for what came, `interrupted` after `stop`. After one the channel is of no more use.
class probe_channel {
public:
  probe_channel(patient_io& io, tcp::socket socket, const core::emulate_options& emulate);

  result<void> dial(const tcp::endpoint& at, core::time_point until);
  result<void> write(std::span<const std::byte> bytes, core::time_point until);
  result<void> read(std::span<std::byte> bytes, core::time_point until);

  /// Waits for the emulated link first.
  result<void> send(const core::frame_header& header, std::span<const std::byte> payload,
                    core::time_point until);
  /// The next header, or nothing after a farewell. An answer in its place is the error it tells.
  result<std::optional<core::frame_header>> receive_header(core::time_point until);
  /// Fills `into`, which has the size that the header said.
  result<void> receive_payload(std::span<std::byte> into, core::time_point until);

  /// "10.0.0.1", of this end; "10.0.0.2:4711", of the other one.
  std::string own_host() const;
  std::string other_end() const;

private:
  result<void> checked(asio::error_code ec) const;
  result<void> perform(core::time_point until,
                       const std::function<void(patient_io::handler)>& begin);

  patient_io& io_;
  tcp::socket socket_;
  asio::steady_timer timer_;
  link_clock pace_;
  running_hash hash_;
  frame_header_bytes header_{};
};

}  // namespace shoal::transport
