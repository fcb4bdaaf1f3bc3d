#pragma once
// One connection that a peer dialed, from its first byte to its end; frames flow in only.
//
//   stranger --hello--> (greeted) --accepted--> reading <--resume/later--> waiting
//      |                    |                      |
//      '---late, garbage----'---------damage, refusal--> closing: say why, drain --> closed
//
// Lives on the io thread. Pending operations keep it alive.

#include <array>
#include <atomic>
#include <functional>
#include <memory>

#include "core/ports.hpp"
#include "transport/hello.hpp"
#include "transport/link_meter.hpp"
#include "transport/tcp/socket.hpp"
#include "transport/wire.hpp"

namespace shoal::transport {

class incoming : public std::enable_shared_from_this<incoming> {
public:
  /// Who judges; implemented by the plane. Never called after `close_saying` or `kill`.
  class judge {
  public:
    virtual ~judge() = default;
    /// A well-formed hello: accept it, or the reason why not.
    virtual result<void> greeted(incoming& from, const greeting& hello) = 0;
    virtual core::admission admit(incoming& from, const core::frame_header& header) = 0;
    /// Whether a taken frame is still wanted; if not, its rest is skipped unchecked.
    virtual bool wanted(const core::frame_header& header) = 0;
    virtual void arrived(incoming& from, const core::frame_header& header,
                         core::shared_bytes payload) = 0;
    /// Before the greeting: a stranger went or was sent away. After: an accepted connection ended.
    virtual void ended(incoming& from, error why) = 0;
    /// The peer has said farewell.
    virtual void left(incoming& from) = 0;
    /// `expire_after` has run out.
    virtual void expired(incoming& from) = 0;
    /// What measures the link from that peer; null for one outside the view. Used at once.
    virtual link_meter* meter(incoming& from) = 0;
  };

  struct limits {
    std::uint64_t frame_bytes_max = 0;
    std::chrono::nanoseconds hello_timeout{};
  };

  incoming(tcp::socket socket, limits limit, judge& who,
           std::atomic<std::uint64_t>& received_bytes);

  void start();
  /// Asks `admit` again, when it said `later`.
  void resume();
  /// Stops writing into taken memory, if the frame is not wanted any more; its rest is skipped.
  void let_go();
  /// Sends `why` to the other end, as the answer to its hello or as the end of the connection, and
  /// closes once it has read it, at the latest after 2 s. Nobody is told.
  void close_saying(const error& why);
  /// Closes at once.
  void kill();

  /// `judge::expired` follows unless called off.
  void expire_after(std::chrono::nanoseconds time);
  void do_not_expire() { timer_.cancel(); }

  bool is_greeted() const { return state_ == state::reading || state_ == state::waiting; }
  /// Of the hello; set once `judge::greeted` is called.
  const greeting& hello() const { return hello_; }
  /// For messages: "127.0.0.1:40312", or with the node's number once it is known.
  const std::string& address() const { return address_; }

private:
  enum class state : std::uint8_t { stranger, reading, waiting, closing, closed };

  bool open() const { return state_ != state::closing && state_ != state::closed; }
  void read_hello();
  void judge_hello();
  void read_header();
  void judge_header();
  void ask();
  void begin_payload();
  void end_payload(bool complete);
  void count(std::size_t bytes);
  void read_payload();
  void got_payload(std::size_t bytes);
  void complete();
  void skip(std::uint64_t bytes);
  void drain();
  void fail(error why);
  void refuse(error why);

  tcp::socket socket_;
  limits limits_;
  judge& judge_;
  std::atomic<std::uint64_t>& received_bytes_;
  asio::steady_timer timer_;  // hello, parking, or the end of closing
  state state_ = state::stranger;
  std::string address_;

  hello_bytes hello_bytes_{};
  greeting hello_;
  answer_bytes answer_{};
  frame_header_bytes header_bytes_{};
  core::frame_header header_;
  bool filling_ = false;  // into_
  core::shared_bytes into_;
  std::size_t offset_ = 0;  // bytes of payload and trailer read
  std::array<std::byte, frame_trailer_size> trailer_{};
  running_hash hash_;
};

}  // namespace shoal::transport
