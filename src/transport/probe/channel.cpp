#include "transport/probe/channel.hpp"

#include <algorithm>

namespace shoal::transport {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

namespace {

constexpr std::size_t piece_size = 256 << 10;  // as nodes have it
constexpr auto notice_stop = 100ms;

/// For operations that end with all bytes or an error.
auto whatever_size(patient_io::handler done) {
  return [done = std::move(done)](asio::error_code ec, std::size_t) { done(ec); };
}

}  // namespace

asio::error_code patient_io::wait(core::time_point until, const std::function<void(handler)>& begin,
                                  const std::function<void()>& cancel) {
  std::optional<asio::error_code> done;
  io_.restart();
  begin([&done](asio::error_code ec) { done = ec; });
  while (!done && !stopped_ && clock::now() < until)
    io_.run_one_until(std::min(until, clock::now() + notice_stop));
  if (done) return *done;
  cancel();
  while (!done) io_.run_one();
  return stopped_ ? asio::error::operation_aborted : asio::error::timed_out;
}

probe_channel::probe_channel(patient_io& io, tcp::socket socket,
                             const core::emulate_options& emulate)
  : io_(io), socket_(std::move(socket)), timer_(io.context()), pace_(emulate.rate, emulate.delay) {
  if (socket_.is_open()) tune(socket_);
}

result<void> probe_channel::checked(asio::error_code ec) const {
  if (!ec) return {};
  if (ec == asio::error::operation_aborted) return error{errc::interrupted, "asked to stop"};
  if (ec == asio::error::timed_out)
    return error{errc::timeout, "the other end did not answer in time"};
  return error_of(ec, "the connection");
}

/// One operation of the socket, which the deadline closes.
result<void> probe_channel::perform(core::time_point until,
                                    const std::function<void(patient_io::handler)>& begin) {
  return checked(io_.wait(until, begin, [&] { close(socket_); }));
}

result<void> probe_channel::dial(const tcp::endpoint& at, core::time_point until) {
  TRY_VOID(perform(until, [&](auto done) { socket_.async_connect(at, done); }));
  tune(socket_);
  return {};
}

result<void> probe_channel::write(std::span<const std::byte> bytes, core::time_point until) {
  return perform(until, [&](auto done) {
    asio::async_write(socket_, asio::buffer(bytes.data(), bytes.size()), whatever_size(done));
  });
}

result<void> probe_channel::read(std::span<std::byte> bytes, core::time_point until) {
  return perform(until, [&](auto done) {
    asio::async_read(socket_, asio::buffer(bytes.data(), bytes.size()), whatever_size(done));
  });
}

result<void> probe_channel::send(const core::frame_header& header,
                                 std::span<const std::byte> payload, core::time_point until) {
  auto due = pace_.put(clock::now(), payload.size() + frame_header_size + frame_trailer_size).last;
  if (due > clock::now()) {
    timer_.expires_at(due);
    TRY_VOID(checked(io_.wait(
      until, [&](auto done) { timer_.async_wait(done); }, [&] { timer_.cancel(); })));
  }
  auto head = encode(header);
  std::array<std::byte, frame_trailer_size> trailer{};
  hash_.restart();
  for (std::size_t at = 0; at == 0 || at < payload.size(); at += piece_size) {
    auto piece = payload.subspan(at, std::min(piece_size, payload.size() - at));
    bool first = at == 0, last = at + piece.size() == payload.size();
    hash_.add(piece);
    if (last) put(trailer, 0, hash_.value());
    std::array<asio::const_buffer, 3> buffers{
      asio::const_buffer(head.data(), first ? head.size() : 0),
      asio::const_buffer(piece.data(), piece.size()),
      asio::const_buffer(trailer.data(), last ? trailer.size() : 0)};
    TRY_VOID(
      perform(until, [&](auto done) { asio::async_write(socket_, buffers, whatever_size(done)); }));
  }
  return {};
}

result<std::optional<core::frame_header>> probe_channel::receive_header(core::time_point until) {
  TRY_VOID(read(header_, until));
  if (is_farewell(header_)) return std::optional<core::frame_header>{};
  if (begins_answer(header_)) {
    answer_bytes answer{};
    std::ranges::copy(header_, answer.begin());
    TRY_VOID(read(std::span(answer).subspan(header_.size()), until));
    TRY_VOID(decode_answer(answer));
    return error{errc::protocol, "it accepted the connection twice"};
  }
  TRY(auto header, decode_frame(header_, probe_bytes_max));
  return std::optional(std::move(header));
}

result<void> probe_channel::receive_payload(std::span<std::byte> into, core::time_point until) {
  hash_.restart();
  for (std::size_t at = 0; at < into.size(); at += piece_size) {
    auto piece = into.subspan(at, std::min(piece_size, into.size() - at));
    TRY_VOID(read(piece, until));
    hash_.add(piece);
  }
  std::array<std::byte, frame_trailer_size> trailer{};
  TRY_VOID(read(trailer, until));
  if (get<std::uint64_t>(trailer, 0) != hash_.value())
    return error{errc::damaged, "a payload's XXH3 hash differs from the one its sender computed"};
  return {};
}

std::string probe_channel::own_host() const {
  asio::error_code ec;
  auto at = socket_.local_endpoint(ec);
  return ec ? "this machine" : at.address().to_string();
}

std::string probe_channel::other_end() const {
  asio::error_code ec;
  auto at = socket_.remote_endpoint(ec);
  return ec ? "an address that is gone" : text_of(at);
}

}  // namespace shoal::transport
