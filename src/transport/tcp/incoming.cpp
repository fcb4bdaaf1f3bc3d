#include "transport/tcp/incoming.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/assert.hpp"

namespace shoal::transport {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t piece_size = 256 << 10;  // hashed while it is in the cache
constexpr auto patience = 2s;

// Where bytes go that nobody wants. One for the thread: nobody looks at it.
asio::mutable_buffer scrap(std::uint64_t bytes) {
  thread_local std::vector<std::byte> memory(piece_size);
  return asio::buffer(memory.data(),
                      static_cast<std::size_t>(std::min<std::uint64_t>(bytes, memory.size())));
}

}  // namespace

incoming::incoming(tcp::socket socket, limits limit, judge& who,
                   std::atomic<std::uint64_t>& received_bytes)
  : socket_(std::move(socket)),
    limits_(limit),
    judge_(who),
    received_bytes_(received_bytes),
    timer_(socket_.get_executor()) {
  asio::error_code ec;
  auto at = socket_.remote_endpoint(ec);
  address_ = ec ? "an address that is gone" : text_of(at);
}

// -- greeting -------------------------------------------------------------------------------------

void incoming::start() {
  tune(socket_);
  timer_.expires_after(limits_.hello_timeout);
  timer_.async_wait([self = shared_from_this()](asio::error_code ec) {
    if (!ec && self->state_ == state::stranger)
      self->fail({errc::timeout, "it said no complete hello in time"});
  });
  read_hello();
}

void incoming::read_hello() {
  auto bytes = asio::buffer(hello_bytes_);
  asio::async_read(
    socket_, asio::buffer(bytes, hello_prefix_size),
    [self = shared_from_this(), bytes](asio::error_code ec, std::size_t) {
      if (self->state_ != state::stranger) return;
      if (ec) return self->fail(error_of(ec, "the connection"));
      if (auto ok = check_prefix(std::span(self->hello_bytes_).first<hello_prefix_size>()); !ok)
        return self->refuse(ok.error());
      asio::async_read(self->socket_, bytes + hello_prefix_size,
                       [self](asio::error_code ec, std::size_t) {
                         if (self->state_ != state::stranger) return;
                         if (ec) return self->fail(error_of(ec, "the connection"));
                         self->judge_hello();
                       });
    });
}

void incoming::judge_hello() {
  auto hello = decode_hello(hello_bytes_);
  if (!hello) return refuse(hello.error());
  hello_ = *hello;
  timer_.cancel();
  address_ = "node " + std::to_string(hello_.from.node.value) + " (" + address_ + ", " +
             std::string(to_string(hello_.direction)) + ")";
  if (auto ok = judge_.greeted(*this, hello_); !ok) return refuse(ok.error());
  state_ = state::reading;
  answer_ = encode_acceptance();
  asio::async_write(socket_, asio::buffer(answer_),
                    [self = shared_from_this()](asio::error_code ec, std::size_t) {
                      if (!self->open()) return;
                      if (ec)
                        return self->fail(error_of(ec, "the connection from " + self->address_));
                      self->read_header();
                    });
}

// -- frames ---------------------------------------------------------------------------------------

void incoming::read_header() {
  asio::async_read(socket_, asio::buffer(header_bytes_),
                   [self = shared_from_this()](asio::error_code ec, std::size_t n) {
                     if (!self->open()) return;
                     self->count(n);
                     if (ec)
                       return self->fail(error_of(ec, "the connection from " + self->address_));
                     self->judge_header();
                   });
}

void incoming::judge_header() {
  if (is_farewell(header_bytes_)) {
    kill();
    return judge_.left(*this);
  }
  auto header = decode_frame(header_bytes_, limits_.frame_bytes_max);
  if (!header) return refuse(header.error());
  header_ = *std::move(header);
  ask();
}

void incoming::ask() {
  auto answer = judge_.admit(*this, header_);
  if (!open()) return;
  switch (answer.what) {
    case core::admission::kind::take:
      SHOAL_ASSERT(answer.into.size == header_.bytes);
      state_ = state::reading;
      into_ = std::move(answer.into);
      begin_payload();
      return read_payload();
    case core::admission::kind::later:
      state_ = state::waiting;
      return;
    case core::admission::kind::drop:
      state_ = state::reading;
      return skip(header_.bytes + frame_trailer_size);
    case core::admission::kind::refuse:
      return refuse({errc::protocol, name_of(header_) + " is refused: " + answer.reason});
  }
}

void incoming::resume() {
  if (state_ == state::waiting) ask();
}

void incoming::begin_payload() {
  filling_ = true;
  offset_ = 0;
  hash_.restart();
  if (header_.bytes < link_meter::frame_bytes_min) return;
  asio::error_code ec;
  auto here = socket_.available(ec);
  if (auto* meter = judge_.meter(*this); meter != nullptr && !ec)
    meter->begin(hello_.direction, std::chrono::steady_clock::now(), header_.bytes, here);
}

void incoming::end_payload(bool complete) {
  if (!std::exchange(filling_, false) || header_.bytes < link_meter::frame_bytes_min) return;
  auto* meter = judge_.meter(*this);
  if (meter == nullptr) return;
  if (complete)
    meter->end(hello_.direction, std::chrono::steady_clock::now());
  else
    meter->drop(hello_.direction);
}

void incoming::count(std::size_t bytes) {
  received_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (auto* meter = judge_.meter(*this)) meter->read(bytes);
}

void incoming::read_payload() {
  // The last piece brings the trailer along.
  auto done = std::min(offset_, into_.size);
  auto size = std::min(piece_size, into_.size - done);
  auto trailer_done = offset_ - done;
  bool last = done + size == into_.size;
  std::array<asio::mutable_buffer, 2> buffers{
    asio::mutable_buffer(into_.data + done, size),
    asio::mutable_buffer(trailer_.data() + trailer_done,
                         last ? trailer_.size() - trailer_done : 0)};
  socket_.async_read_some(buffers, [self = shared_from_this()](asio::error_code ec, std::size_t n) {
    if (!self->open()) return;
    self->count(n);
    if (ec && ec != asio::error::operation_aborted)  // that was let_go
      return self->fail(error_of(ec, "the connection from " + self->address_));
    self->got_payload(n);
  });
}

void incoming::got_payload(std::size_t bytes) {
  if (!judge_.wanted(header_)) {
    end_payload(false);
    into_ = {};
    return skip(header_.bytes + frame_trailer_size - offset_ - bytes);
  }
  auto done = std::min(offset_, into_.size);
  hash_.add({into_.data + done, std::min(bytes, into_.size - done)});
  offset_ += bytes;
  if (offset_ == into_.size + frame_trailer_size)
    complete();
  else
    read_payload();
}

void incoming::complete() {
  end_payload(true);
  auto payload = std::move(into_);
  into_ = {};
  if (get<std::uint64_t>(trailer_, 0) != hash_.value())
    return refuse(
      {errc::damaged, "the payload of " + name_of(header_) +
                        " is damaged: its XXH3 hash differs from the one its sender computed"});
  judge_.arrived(*this, header_, std::move(payload));
  if (open()) read_header();
}

void incoming::let_go() {
  asio::error_code ignored;
  if (filling_ && !judge_.wanted(header_)) socket_.cancel(ignored);
}

void incoming::skip(std::uint64_t bytes) {
  if (bytes == 0) return read_header();
  socket_.async_read_some(
    scrap(bytes), [self = shared_from_this(), bytes](asio::error_code ec, std::size_t n) {
      if (!self->open()) return;
      self->count(n);
      if (ec) return self->fail(error_of(ec, "the connection from " + self->address_));
      self->skip(bytes - n);
    });
}

// -- the end --------------------------------------------------------------------------------------

void incoming::expire_after(std::chrono::nanoseconds time) {
  timer_.expires_after(time);
  timer_.async_wait([self = shared_from_this()](asio::error_code ec) {
    if (!ec && self->open()) self->judge_.expired(*self);
  });
}

void incoming::fail(error why) {
  auto self = shared_from_this();  // the judge lets go of us
  kill();
  judge_.ended(*this, std::move(why));
}

void incoming::refuse(error why) {
  auto self = shared_from_this();
  close_saying(why);
  judge_.ended(*this, std::move(why));
}

void incoming::close_saying(const error& why) {
  if (!open()) return;
  end_payload(false);
  state_ = state::closing;
  asio::error_code ignored;
  socket_.cancel(ignored);  // pending reads end, and find us closing
  into_ = {};
  timer_.expires_after(patience);
  timer_.async_wait([self = shared_from_this()](asio::error_code ec) {
    if (!ec) self->kill();
  });
  answer_ = encode_refusal(why);
  asio::async_write(socket_, asio::buffer(answer_),
                    [self = shared_from_this()](asio::error_code ec, std::size_t) {
                      if (ec) return self->kill();
                      asio::error_code ignored;
                      self->socket_.shutdown(tcp::socket::shutdown_send, ignored);
                      self->drain();
                    });
}

// Closing with unread bytes would reset the connection, and the reset would overtake the reason.
void incoming::drain() {
  socket_.async_read_some(scrap(piece_size),
                          [self = shared_from_this()](asio::error_code ec, std::size_t) {
                            if (ec || self->state_ == state::closed) return self->kill();
                            self->drain();
                          });
}

void incoming::kill() {
  end_payload(false);
  state_ = state::closed;
  timer_.cancel();
  close(socket_);
}

}  // namespace shoal::transport
