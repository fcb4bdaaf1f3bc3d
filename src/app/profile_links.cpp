#include "app/profile_links.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>

#include "app/signals.hpp"
#include "base/units.hpp"
#include "transport/probe/answerer.hpp"
#include "transport/probe/peer_probe.hpp"

namespace shoal::app {

namespace {

std::vector<core::message_time> messages_of(const std::vector<transport::link_time>& times) {
  std::vector<core::message_time> messages;
  for (auto& t : times) messages.push_back({t.bytes, time_of(t.seconds)});
  return messages;
}

std::string text_of(const address& at) {
  auto six = at.host.find(':') != std::string::npos;
  return (six ? "[" + at.host + "]" : at.host) + ":" + std::to_string(at.port);
}

}  // namespace

core::measured_time time_of(const robust_value& v) {
  return {core::nanoseconds(std::llround(v.mean * 1e9)), std::min(1.0, v.relative_half_width()),
          v.used};
}

result<std::vector<core::link_pair>> probe_peers(const std::vector<address>& peers,
                                                 const core::job_options& job,
                                                 std::uint64_t job_digest) {
  std::vector<core::link_pair> pairs;
  for (auto& peer : peers) {
    TRY(auto times,
        transport::probe_peer(peer.host, peer.port, {.job = job_digest, .emulate = job.emulate}));
    auto name = text_of(peer);
    pairs.push_back({times.here, name, messages_of(times.there)});
    pairs.push_back({name, times.here, messages_of(times.back)});
  }
  return pairs;
}

result<void> answer_probes(const profile_options& options, const core::job_options& job,
                           std::uint64_t job_digest) {
  auto say = [](const std::string& sentence) {
    std::printf("%s\n", sentence.c_str());
    std::fflush(stdout);  // who watches it wants to see it now
  };
  TRY(auto at, transport::listen_tcp(options.answer->host, options.answer->port));
  transport::probe_answerer answerer({.job = job_digest, .emulate = job.emulate, .log = say},
                                     std::move(at));
  signal_watch signals({SIGINT, SIGTERM}, [&](int) { answerer.stop(); });
  say("answering probes at " + text_of(*options.answer) + " for " +
      shoal::text_of(options.answer_for) + "; on the other machines: shoal profile " +
      options.job.path + " --peer " + text_of(*options.answer) +
      (options.insecure ? " --insecure" : ""));
  return answerer.run(std::chrono::steady_clock::now() + options.answer_for);
}

std::string text_of(const std::vector<core::message_time>& messages) {
  std::string text;
  for (auto& m : messages)
    text += (text.empty() ? "" : "  ") + shoal::text_of(byte_count{m.message_bytes}) + " " +
            shoal::text_of(m.one_way.value);
  return text;
}

std::string text_of(const std::vector<core::link_pair>& pairs) {
  std::string text;
  for (auto& pair : pairs)
    text += pair.from + " to " + pair.to + ", one way:  " + text_of(pair.messages) + "\n";
  return text;
}

}  // namespace shoal::app
