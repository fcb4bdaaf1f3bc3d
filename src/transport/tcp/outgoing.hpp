#pragma once
// One connection to a peer, from dialing to its end; frames flow out only.
//
//   dialing --accepted--> ready --error--> (lost) closed
//      |  ^                 |
//      |  '--try again--.   '--leave()--> leaving: finish the frame, say farewell --> closed
//      '--refused, late--> (lost) closed
//
// Lives on the io thread, like everything in this folder. Pending operations keep it alive.

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>

#include "core/messages.hpp"
#include "core/time.hpp"
#include "transport/hello.hpp"
#include "transport/link_clock.hpp"
#include "transport/tcp/socket.hpp"
#include "transport/wire.hpp"

namespace shoal::transport {

/// A frame on its way: its header in bytes, its payload, and when it may be written.
struct outbound_frame {
  frame_header_bytes header{};
  core::shared_bytes payload;
  passage due;
};

class outgoing : public std::enable_shared_from_this<outgoing> {
public:
  /// Whom to dial, and how to greet.
  struct target {
    core::member peer;
    greeting hello;
    std::chrono::nanoseconds connect_timeout{};
  };
  /// Called at most once each, never after `leave` or `kill`. `lost` is last.
  struct events {
    std::function<void()> ready;
    std::function<void(error)> lost;
  };

  outgoing(asio::io_context& io, target whom, events tell, std::atomic<std::uint64_t>& sent_bytes);

  /// Dials until accepted, finally refused, or `deadline`. Attempts come 10 ms to 320 ms apart: the
  /// peer may not be listening yet.
  void dial(core::time_point deadline);
  /// For a connection still dialing.
  void set_deadline(core::time_point deadline) { deadline_ = deadline; }

  /// Sends after those pushed before, once ready and not before `frame.due`: a large frame's header
  /// and pieces when it is their turn between first and last, a small one whole at the last.
  void push(outbound_frame frame);
  /// Drops frames not begun; what is left of one that is follows without pace.
  void clear();
  /// Payload bytes pushed and not yet sent or dropped.
  std::uint64_t queued_bytes() const { return queued_bytes_; }
  bool is_ready() const { return state_ == state::ready; }
  /// See `least_round_trip`; 0 unless ready.
  std::chrono::nanoseconds round_trip();

  /// Closes so that the peer does not take it for a death: clears, finishes the frame that is being
  /// written, says farewell. Given up after 2 s.
  void leave();
  /// Closes at once.
  void kill();

private:
  enum class state : std::uint8_t { dialing, ready, leaving, closed };

  void attempt();
  bool reached_itself() const;
  void greet(std::uint64_t attempt);
  void attempt_failed(std::uint64_t attempt, error why);
  void accepted();
  void watch();
  void write_next();
  bool early(core::time_point due);
  void write_piece();
  void wrote_piece(std::size_t payload_bytes, bool last);
  void write_farewell();
  void lose(error why);

  target whom_;
  events tell_;
  std::atomic<std::uint64_t>& sent_bytes_;
  tcp::socket socket_;
  asio::steady_timer
    timer_;  // dialing: this attempt or the pause after it; later: the end of patience
  asio::steady_timer pace_;  // the front of the queue, or the next piece of current_, is due
  bool paused_ = false;      // until then
  state state_ = state::dialing;
  std::string address_;  // for messages

  core::time_point deadline_;
  std::uint64_t attempt_ =
    0;  // grows when one begins and when one fails: late completions are told by it
  std::uint64_t tries_ = 0;
  std::chrono::nanoseconds pause_ = std::chrono::milliseconds(10);
  answer_bytes answer_{};

  std::deque<outbound_frame> queue_;
  std::uint64_t queued_bytes_ = 0;  // with the one being written
  bool writing_ = false;            // current_
  bool header_written_ = false;
  outbound_frame current_;
  std::size_t offset_ = 0;  // of the payload of current_, written
  std::array<std::byte, frame_trailer_size> trailer_{};
  running_hash hash_;
};

}  // namespace shoal::transport
