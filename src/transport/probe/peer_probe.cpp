#include "transport/probe/peer_probe.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"
#include "transport/probe/channel.hpp"

namespace shoal::transport {

namespace {

using clock = std::chrono::steady_clock;

/// A greeted connection, and memory for what travels on it.
class asker {
public:
  asker(const peer_probe_options& options, const tcp::endpoint& at)
    : options_(options), at_(at), channel_(io_, tcp::socket(io_.context()), options.emulate) {}

  result<void> greet() {
    auto until = clock::now() + options_.probe.deadline;
    TRY_VOID(channel_.dial(at_, until));
    TRY_VOID(channel_.write(
      encode(greeting{.job = options_.job, .from = probe_asker, .to = probe_answerer_name}),
      until));
    answer_bytes answer{};
    TRY_VOID(channel_.read(answer, until));
    return decode_answer(answer);
  }

  /// Seconds from the first byte of `out` there to the last of `in` back.
  result<double> exchange(std::uint64_t out, std::uint64_t in) {
    room_.resize(std::max<std::uint64_t>({room_.size(), out, in}));
    core::frame_header request{.view = {1},
                               .step = {1},
                               .kind = core::frame_kind::activation,
                               .micro_batch = ++number_,
                               .part = static_cast<std::uint32_t>(in),
                               .scalar = core::scalar_kind::u8,
                               .shape = {static_cast<std::int64_t>(out)},
                               .bytes = out};
    auto begin = clock::now();
    auto until = begin + options_.probe.deadline;
    TRY_VOID(channel_.send(request, std::span(room_).first(out), until));
    TRY(auto reply, channel_.receive_header(until));
    if (!reply || reply->micro_batch != number_ || reply->bytes != in)
      return error{errc::protocol, "it answered something else than it was asked"};
    TRY_VOID(channel_.receive_payload(std::span(room_).first(in), until));
    return std::chrono::duration<double>(clock::now() - begin).count();
  }

  result<peer_times> measure() {
    peer_times times{channel_.own_host(), {}, {}};
    auto small = options_.probe.sizes.front();
    TRY(auto round, measured(options_.probe, [&] { return exchange(small, small); }));
    times.there.push_back({small, half(round)});
    times.back.push_back({small, half(round)});
    for (auto bytes : options_.probe.sizes) {
      if (bytes == small) continue;
      TRY(auto out, measured(options_.probe, [&] { return exchange(bytes, small); }));
      times.there.push_back({bytes, less_half(out, round)});
      TRY(auto in, measured(options_.probe, [&] { return exchange(small, bytes); }));
      times.back.push_back({bytes, less_half(in, round)});
    }
    (void)channel_.write(farewell(), clock::now() + std::chrono::seconds(1));  // all is measured
    return times;
  }

private:
  static robust_value half(robust_value round) {
    round.mean /= 2;
    round.half_width /= 2;
    return round;
  }
  /// No message is faster than the smallest, whatever noise says.
  static robust_value less_half(robust_value whole, const robust_value& round) {
    whole.mean = std::max(whole.mean - round.mean / 2, round.mean / 2);
    whole.half_width = std::hypot(whole.half_width, round.half_width / 2);
    return whole;
  }

  const peer_probe_options& options_;
  tcp::endpoint at_;
  patient_io io_;
  probe_channel channel_;
  std::vector<std::byte> room_;
  std::uint32_t number_ = 0;
};

std::string advice(errc code, const std::string& at) {
  auto command = "`shoal profile JOB.toml --answer " + at + "`";
  switch (code) {
    case errc::unreachable:
      return "; run " + command + " there, and check that no firewall is between";
    case errc::timeout:
      return "; check that " + command + " runs there and serves nobody else, and the network";
    case errc::protocol:
      return "; check that it is " + command + " of the same shoal that listens there";
    case errc::damaged:
      return "; try again, and check the network if it stays so";
    default:
      return "";  // the peer's own words say it
  }
}

}  // namespace

result<peer_times> probe_peer(const std::string& host, std::uint16_t port,
                              const peer_probe_options& options) {
  SHOAL_ASSERT(!options.probe.sizes.empty());
  SHOAL_ASSERT(std::ranges::max(options.probe.sizes) <= probe_bytes_max);
  TRY(auto at, endpoint_of(host, port));
  auto told = [&](const error& why) {
    return error{why.code, "peer " + text_of(at) + ": " + why.text + advice(why.code, text_of(at))};
  };
  asker ask(options, at);
  if (auto ok = ask.greet(); !ok) return told(ok.error());
  auto times = ask.measure();
  if (!times) return told(times.error());
  return times;
}

}  // namespace shoal::transport
