#include "transport/tcp/outgoing.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "transport/tcp/round_trip.hpp"

namespace shoal::transport {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

namespace {

// Small enough to stay in the cache between hashing and the kernel's copy, large enough that the
// call costs nothing beside it; it also bounds how long other connections wait for the thread.
constexpr std::size_t piece_size_max = 256 << 10;
// On an emulated link: a piece for a millisecond, so that the receiver sees a steady flow.
constexpr std::size_t piece_size_min = 16 << 10, paced_size_min = 64 << 10;
constexpr auto pause_max = 320ms;
constexpr auto patience = 2s;

/// Whether the emulated link spreads the frame over time. Then its header goes alone, for the
/// receiver to take the time from.
bool is_paced(const outbound_frame& f) {
  return f.due.first < f.due.last && f.payload.size >= paced_size_min;
}

std::size_t piece_size_of(const outbound_frame& f) {
  if (!is_paced(f)) return piece_size_max;
  auto ns = static_cast<std::size_t>((f.due.last - f.due.first).count());
  return std::clamp(f.payload.size * 1'000'000 / ns, piece_size_min, piece_size_max);
}

/// When the first `bytes` of the payload may be written.
core::time_point due_of(const outbound_frame& f, std::size_t bytes) {
  if (!is_paced(f)) return f.due.last;
  auto share = static_cast<double>(bytes) / static_cast<double>(f.payload.size);
  return f.due.first +
         std::chrono::duration_cast<std::chrono::nanoseconds>(
           share * std::chrono::duration<double, std::nano>(f.due.last - f.due.first));
}

}  // namespace

outgoing::outgoing(asio::io_context& io, target whom, events tell,
                   std::atomic<std::uint64_t>& sent_bytes)
  : whom_(std::move(whom)),
    tell_(std::move(tell)),
    sent_bytes_(sent_bytes),
    socket_(io),
    timer_(io),
    pace_(io) {
  address_ = "node " + std::to_string(whom_.peer.who.node.value) + " at " + whom_.peer.at.host +
             ":" + std::to_string(whom_.peer.at.tensor_port);
}

// -- dialing --------------------------------------------------------------------------------------

void outgoing::dial(core::time_point deadline) {
  SHOAL_ASSERT(state_ == state::dialing && tries_ == 0);
  deadline_ = deadline;
  // Posted: the caller must have stored us before we can call it back.
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (self->state_ == state::dialing) self->attempt();
  });
}

void outgoing::attempt() {
  ++tries_;
  auto number = ++attempt_;
  auto at = endpoint_of(whom_.peer.at.host, whom_.peer.at.tensor_port);
  if (!at) return attempt_failed(number, at.error());
  close(socket_);
  auto until = std::min(deadline_, clock::now() + whom_.connect_timeout);
  timer_.expires_at(until);
  timer_.async_wait([self = shared_from_this(), number](asio::error_code ec) {
    if (!ec) self->attempt_failed(number, {errc::timeout, "no answer in time"});
  });
  socket_.async_connect(*at, [self = shared_from_this(), number](asio::error_code ec) {
    if (ec)
      self->attempt_failed(number, {errc::unreachable, ec.message()});
    else if (self->reached_itself())
      self->attempt_failed(number, {errc::unreachable, "nobody listens there"});
    else
      self->greet(number);
  });
}

// On one machine a dialer of a free port may be given just that port as its own, and be connected
// to itself.
bool outgoing::reached_itself() const {
  asio::error_code ec;
  return socket_.local_endpoint(ec) == socket_.remote_endpoint(ec) && !ec;
}

void outgoing::greet(std::uint64_t number) {
  if (state_ != state::dialing || number != attempt_) return;
  tune(socket_);
  auto hello =
    std::make_shared<hello_bytes>(encode(whom_.hello));  // shared: outlives this call only
  asio::async_write(socket_, asio::buffer(*hello),
                    [self = shared_from_this(), number, hello](asio::error_code ec, std::size_t) {
                      if (ec) return self->attempt_failed(number, error_of(ec, "the connection"));
                      asio::async_read(
                        self->socket_, asio::buffer(self->answer_),
                        [self, number](asio::error_code ec, std::size_t) {
                          if (self->state_ != state::dialing || number != self->attempt_) return;
                          if (ec)
                            return self->attempt_failed(number, error_of(ec, "the connection"));
                          if (auto answer = decode_answer(self->answer_); !answer)
                            return self->attempt_failed(number, answer.error());
                          self->accepted();
                        });
                    });
}

void outgoing::attempt_failed(std::uint64_t number, error why) {
  if (state_ != state::dialing || number != attempt_) return;
  number = ++attempt_;  // what is still under way of the failed one counts no more
  close(socket_);
  timer_.cancel();
  auto now = clock::now();
  if (!retryable(why.code))
    return lose({why.code, "cannot open a " + std::string(to_string(whom_.hello.direction)) +
                             " connection to " + address_ + ": " + why.text});
  auto next = std::min(now + pause_, deadline_);
  pause_ = std::min<std::chrono::nanoseconds>(2 * pause_, pause_max);
  timer_.expires_at(next);
  timer_.async_wait([self = shared_from_this(), number, why = std::move(why)](asio::error_code ec) {
    if (ec || self->state_ != state::dialing || number != self->attempt_) return;
    if (clock::now() < self->deadline_) return self->attempt();
    self->lose({why.code, self->address_ + " cannot be reached on its tensor port, tried " +
                            std::to_string(self->tries_) + " times: " + why.text +
                            "; check that it runs and that no firewall is between"});
  });
}

std::chrono::nanoseconds outgoing::round_trip() {
  return is_ready() ? least_round_trip(socket_.native_handle()) : std::chrono::nanoseconds(0);
}

void outgoing::accepted() {
  state_ = state::ready;
  timer_.cancel();
  watch();
  write_next();
  tell_.ready();
}

// The other end never speaks but to say why it closes. A read that is always pending also is what
// notices its death.
void outgoing::watch() {
  asio::async_read(socket_, asio::buffer(answer_),
                   [self = shared_from_this()](asio::error_code ec, std::size_t) {
                     if (self->state_ == state::leaving) return self->kill();
                     if (self->state_ != state::ready) return;
                     if (ec) return self->lose(error_of(ec, "the connection to " + self->address_));
                     auto answer = decode_answer(self->answer_);
                     if (answer) answer = error{errc::protocol, "it accepted the connection twice"};
                     self->lose(in(self->address_ + " closed the connection", answer.error()));
                   });
}

// -- sending --------------------------------------------------------------------------------------

void outgoing::push(outbound_frame frame) {
  if (state_ != state::dialing && state_ != state::ready) return;
  queued_bytes_ += frame.payload.size;
  queue_.push_back(std::move(frame));
  if (queue_.size() == 1) write_next();  // else a write or the pace timer is pending already
}

void outgoing::clear() {
  queue_.clear();
  queued_bytes_ = writing_ ? current_.payload.size : 0;
  current_.due = {};
  pace_.cancel();
  if (std::exchange(paused_, false) && writing_) write_piece();
}

/// Whether it is too early; goes on by itself once it is not.
bool outgoing::early(core::time_point due) {
  if (due <= clock::now()) return false;
  paused_ = true;
  pace_.expires_at(due);
  pace_.async_wait([self = shared_from_this()](asio::error_code ec) {
    if (ec || !std::exchange(self->paused_, false)) return;
    if (self->writing_)
      self->write_piece();
    else
      self->write_next();
  });
  return true;
}

void outgoing::write_next() {
  if (writing_ || paused_) return;
  if (state_ == state::leaving) return write_farewell();
  if (state_ != state::ready || queue_.empty()) return;
  auto& next = queue_.front();
  if (early(is_paced(next) ? next.due.first : next.due.last)) return;
  current_ = std::move(next);
  queue_.pop_front();
  writing_ = true;
  header_written_ = false;
  offset_ = 0;
  write_piece();
}

void outgoing::write_piece() {
  auto& payload = current_.payload;
  bool header = !header_written_, header_alone = header && is_paced(current_);
  auto size = header_alone ? 0 : std::min(piece_size_of(current_), payload.size - offset_);
  if (early(due_of(current_, offset_ + size))) return;
  header_written_ = true;
  std::span<const std::byte> piece(payload.data + offset_, size);
  bool first = offset_ == 0, last = offset_ + size == payload.size;
  if (first && last) {
    put(trailer_, 0, hash_of(piece));
  } else {
    if (first) hash_.restart();
    hash_.add(piece);
    if (last) put(trailer_, 0, hash_.value());
  }
  std::array<asio::const_buffer, 3> buffers{
    asio::const_buffer(current_.header.data(), header ? current_.header.size() : 0),
    asio::const_buffer(piece.data(), piece.size()),
    asio::const_buffer(trailer_.data(), last ? trailer_.size() : 0)};
  asio::async_write(socket_, buffers,
                    [self = shared_from_this(), size, last](asio::error_code ec, std::size_t n) {
                      self->sent_bytes_.fetch_add(n, std::memory_order_relaxed);
                      if (!ec) return self->wrote_piece(size, last);
                      // The pending read ends too, and may bring the reason in the other end's
                      // words.
                      if (self->state_ != state::ready) return self->kill();
                      self->timer_.expires_after(patience);
                      self->timer_.async_wait([self, ec](asio::error_code cancelled) {
                        if (!cancelled && self->state_ == state::ready)
                          self->lose(error_of(ec, "the connection to " + self->address_));
                      });
                    });
}

void outgoing::wrote_piece(std::size_t payload_bytes, bool last) {
  if (state_ == state::closed) return;
  offset_ += payload_bytes;
  if (!last) return write_piece();
  queued_bytes_ -= current_.payload.size;
  current_ = {};  // lets go of the tensor
  writing_ = false;
  write_next();
}

// -- the end --------------------------------------------------------------------------------------

void outgoing::leave() {
  if (state_ != state::ready) return kill();
  state_ = state::leaving;
  clear();
  timer_.expires_after(patience);
  timer_.async_wait([self = shared_from_this()](asio::error_code ec) {
    if (!ec) self->kill();
  });
  write_next();
}

void outgoing::write_farewell() {
  writing_ = true;
  current_.header = farewell();
  asio::async_write(socket_, asio::buffer(current_.header),
                    [self = shared_from_this()](asio::error_code ec, std::size_t) {
                      if (ec) return self->kill();
                      // The other end closes when it has read the farewell, and the pending read
                      // then kills us; closing here already could lose it.
                      asio::error_code ignored;
                      self->socket_.shutdown(tcp::socket::shutdown_send, ignored);
                    });
}

void outgoing::lose(error why) {
  kill();
  tell_.lost(std::move(why));
}

void outgoing::kill() {
  state_ = state::closed;
  paused_ = false;
  timer_.cancel();
  pace_.cancel();
  close(socket_);
  queue_.clear();
  if (!writing_) current_ = {};  // else the pending write still reads it
  queued_bytes_ = 0;
}

}  // namespace shoal::transport
