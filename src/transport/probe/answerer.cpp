#include "transport/probe/answerer.hpp"

#include <algorithm>
#include <vector>

#include "base/assert.hpp"
#include "transport/probe/channel.hpp"

namespace shoal::transport {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

namespace {

constexpr auto patience = 2s;  // to tell someone why he is sent away

result<void> judge(const greeting& hello, std::uint64_t job) {
  if (hello.to != probe_answerer_name || hello.from != probe_asker)
    return error{errc::refused, "this port answers `shoal profile --peer`, not nodes"};
  if (hello.job != job)
    return error{errc::foreign, "the job's digest is " + std::to_string(hello.job) +
                                  ", here it is " + std::to_string(job) +
                                  "; use the same job file and data on both machines"};
  return {};
}

core::frame_header reply_to(const core::frame_header& request) {
  return {.view = request.view,
          .step = request.step,
          .kind = request.kind,
          .micro_batch = request.micro_batch,
          .scalar = core::scalar_kind::u8,
          .shape = {static_cast<std::int64_t>(request.part)},
          .bytes = request.part};
}

}  // namespace

class probe_answerer::impl {
public:
  impl(answerer_options options, listening_port at);
  result<void> run(core::time_point until);

  answerer_options options_;
  std::uint16_t port_;
  patient_io io_;

private:
  result<void> greet(probe_channel& with, core::time_point until);
  result<std::uint64_t> serve(probe_channel& with, core::time_point until);

  tcp::acceptor acceptor_;
};

probe_answerer::probe_answerer(answerer_options options, listening_port at)
  : impl_(std::make_unique<impl>(std::move(options), std::move(at))) {}
probe_answerer::~probe_answerer() = default;
std::uint16_t probe_answerer::port() const { return impl_->port_; }
result<void> probe_answerer::run(core::time_point until) { return impl_->run(until); }
void probe_answerer::stop() { impl_->io_.stop(); }

probe_answerer::impl::impl(answerer_options options, listening_port at)
  : options_(std::move(options)), port_(at.port()), acceptor_(io_.context()) {
  auto address = endpoint_of(at.host(), at.port());
  SHOAL_ASSERT(address);  // listen_tcp has used it
  acceptor_.assign(address->protocol(), at.release());
  acceptor_.non_blocking(true);
}

result<void> probe_answerer::impl::run(core::time_point until) {
  for (;;) {
    tcp::socket socket(io_.context());
    auto ec = io_.wait(
      until, [&](auto done) { acceptor_.async_accept(socket, done); },
      [&] {
        asio::error_code ignored;
        acceptor_.cancel(ignored);
      });
    if (ec == asio::error::timed_out || io_.stopped()) return {};
    if (ec == asio::error::connection_aborted) continue;
    if (ec) return error{errc::io, "cannot take a connection: " + ec.message()};
    probe_channel with(io_, std::move(socket), options_.emulate);
    auto name = with.other_end();
    auto served = serve(with, std::min(until, clock::now() + options_.visit_max));
    if (!served) {
      // The reason, for an asker that still reads; not to one that is gone or talks too long.
      (void)with.write(encode_refusal(served.error()), std::min(until, clock::now() + patience));
    }
    if (options_.log)
      options_.log(served ? "answered " + std::to_string(*served) + " probes of " + name
                          : "sent " + name + " away: " + served.error().text);
  }
}

result<void> probe_answerer::impl::greet(probe_channel& with, core::time_point until) {
  hello_bytes bytes{};
  auto prefix = std::span(bytes).first<hello_prefix_size>();
  TRY_VOID(with.read(prefix, until));
  TRY_VOID(check_prefix(prefix));
  TRY_VOID(with.read(std::span(bytes).subspan(hello_prefix_size), until));
  TRY(auto hello, decode_hello(bytes));
  TRY_VOID(judge(hello, options_.job));
  return with.write(encode_acceptance(), until);
}

result<std::uint64_t> probe_answerer::impl::serve(probe_channel& with, core::time_point until) {
  TRY_VOID(greet(with, std::min(until, clock::now() + options_.hello_timeout)));
  std::vector<std::byte> room;
  for (std::uint64_t count = 0;; ++count) {
    auto soon = std::min(until, clock::now() + options_.silence_max);
    TRY(auto request, with.receive_header(soon));
    if (!request) return count;
    if (request->part > probe_bytes_max)
      return error{errc::protocol, "a probe asks for " + std::to_string(request->part) +
                                     " bytes, expected at most " + std::to_string(probe_bytes_max)};
    room.resize(std::max<std::uint64_t>({room.size(), request->bytes, request->part}));
    TRY_VOID(with.receive_payload(std::span(room).first(request->bytes), soon));
    TRY_VOID(with.send(reply_to(*request), std::span(room).first(request->part), soon));
  }
}

}  // namespace shoal::transport
