#include "transport/probe/peer_probe.hpp"

#include <catch2/catch.hpp>
#include <mutex>
#include <optional>
#include <thread>

#include "transport/probe/answerer.hpp"
#include "transport/probe/terms.hpp"
#include "unit/transport/nodes.hpp"
#include "unit/transport/raw_peer.hpp"

using namespace shoal;
using namespace shoal::transport;
using namespace shoal::transport::testing;
using namespace std::string_view_literals;

namespace {

using clock = std::chrono::steady_clock;

constexpr std::uint64_t job = 4711;

/// An answerer on a thread of its own, with what it logged.
class answering {
public:
  explicit answering(answerer_options options = {}) : answerer_(with_log(options), listen()) {
    thread_ = std::thread([this] { ended_ = answerer_.run(clock::now() + 60s); });
  }
  ~answering() {
    answerer_.stop();
    thread_.join();
    CHECK(ended_);
  }
  std::uint16_t port() const { return answerer_.port(); }
  /// Waits for the next line of the log.
  std::string told() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 20s, [&] { return !log_.empty(); });
    return log_.empty() ? "" : std::exchange(log_, {}).front();
  }

private:
  answerer_options with_log(answerer_options options) {
    options.job = job;
    options.log = [this](const std::string& line) {
      std::lock_guard lock(mutex_);
      log_.push_back(line);
      changed_.notify_all();
    };
    return options;
  }
  static listening_port listen() {
    auto at = listen_tcp("127.0.0.1", 0);
    REQUIRE(at);
    return std::move(*at);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> log_;
  probe_answerer answerer_;
  result<void> ended_;
  std::thread thread_;
};

peer_probe_options quick(core::emulate_options emulate = {}) {
  peer_probe_options o{.job = job, .emulate = emulate};
  o.probe = {.sizes = {4, 100'000, 1'000'000}, .warm_up = 1, .frames_max = 4, .deadline = 10s};
  return o;
}

std::string failure(std::uint16_t port, errc code, peer_probe_options options = quick()) {
  auto times = probe_peer("127.0.0.1", port, options);
  REQUIRE_FALSE(times);
  CHECK(times.error().code == code);
  CHECK_THAT(times.error().text,
             Catch::StartsWith("peer 127.0.0.1:" + std::to_string(port) + ": "));
  return times.error().text;
}

/// Does with its one guest what a test says, then closes.
class odd_peer {
public:
  explicit odd_peer(std::function<void(raw_peer&)> behave)
    : thread_([this, behave = std::move(behave)] {
        auto guest = listener_.accept();
        behave(guest);
      }) {}
  ~odd_peer() { thread_.join(); }
  std::uint16_t port() const { return listener_.port(); }

private:
  raw_listener listener_;
  std::thread thread_;
};

void take(raw_peer& from, std::size_t bytes) {
  std::vector<std::byte> room(bytes);
  from.read(room);
}

/// Waits until the guest goes.
void stay(raw_peer& with) {
  std::byte one{};
  while (with.read({&one, 1})) continue;
}

core::frame_header frame_of(std::uint64_t bytes, std::uint32_t number, std::uint32_t part = 4) {
  return {.view = {1},
          .step = {1},
          .kind = core::frame_kind::activation,
          .micro_batch = number,
          .part = part,
          .scalar = core::scalar_kind::u8,
          .shape = {static_cast<std::int64_t>(bytes)},
          .bytes = bytes};
}

}  // namespace

TEST_CASE("a peer's link is measured both ways, one asker after the other", "[transport][probe]") {
  answering peer;
  for (int visit = 0; visit < 2; ++visit) {
    auto times = probe_peer("127.0.0.1", peer.port(), quick());
    INFO((times ? "" : times.error().text));
    REQUIRE(times);
    CHECK(times->here == "127.0.0.1");
    for (auto* way : {&times->there, &times->back}) {
      REQUIRE(way->size() == 3);
      CHECK(way->at(0).bytes == 4);
      CHECK(way->at(2).bytes == 1'000'000);
      for (auto& row : *way) {
        CHECK(row.seconds.mean > 0);
        CHECK(row.seconds.used + row.seconds.rejected <= 4);
      }
      CHECK(way->at(2).seconds.mean >= way->at(0).seconds.mean);
    }
    CHECK_THAT(peer.told(), Catch::StartsWith("answered 25 probes of 127.0.0.1:"));
  }
}

TEST_CASE("emulated rate and delay are what a peer probe measures, each way its own",
          "[transport][probe]") {
  answerer_options slow;
  slow.emulate = {.rate = {5e6}, .delay = 10ms};
  answering peer(slow);
  auto times = probe_peer("127.0.0.1", peer.port(), quick({.rate = {20e6}, .delay = 10ms}));
  INFO((times ? "" : times.error().text));
  REQUIRE(times);
  CHECK(times->there[0].seconds.mean == Approx(0.010).epsilon(0.2));
  CHECK(times->there[2].seconds.mean == Approx(0.060).epsilon(0.2));
  CHECK(times->back[2].seconds.mean == Approx(0.210).epsilon(0.2));
}

TEST_CASE("two askers at once are served one after the other", "[transport][probe]") {
  answering peer;
  std::optional<result<peer_times>> first, second;
  std::thread one([&] { first = probe_peer("127.0.0.1", peer.port(), quick()); });
  std::thread two([&] { second = probe_peer("127.0.0.1", peer.port(), quick()); });
  one.join();
  two.join();
  CHECK(*first);
  CHECK(*second);
}

TEST_CASE("a peer where nobody listens, or of another job, is named with what to do",
          "[transport][probe][fault]") {
  std::uint16_t free = 0;
  {
    auto at = listen_tcp("127.0.0.1", 0);
    REQUIRE(at);
    free = at->port();
  }
  CHECK_THAT(failure(free, errc::unreachable), Catch::Contains("--answer 127.0.0.1:"));
  answering peer;
  auto other = quick();
  other.job = 5;
  CHECK_THAT(failure(peer.port(), errc::foreign, other), Catch::Contains("the same job file"));
  CHECK_THAT(peer.told(), Catch::Contains("away: the job's digest is 5, here it is 4711"));
  CHECK(probe_peer("127.0.0.1", peer.port(), quick()));  // it goes on
}

TEST_CASE("a node's tensor port refuses a probe, and an answerer refuses a node",
          "[transport][probe][fault]") {
  tcp_world world;
  world.tcp.job = job;
  auto ann = world.make(1);
  ann->open(1, {});
  CHECK_THAT(failure(ann->plane->port(), errc::unreachable), Catch::Contains("here is node 1"));
  answering peer;
  raw_peer node(peer.port());
  auto answer = node.greet({.job = job, .from = {{2}, {1}}, .to = {{1}, {1}}});
  REQUIRE(answer);
  REQUIRE_FALSE(*answer);
  CHECK_THAT(answer->error().text, Catch::Contains("not nodes"));
}

TEST_CASE("a peer that says garbage, nothing, or leaves in the middle does no harm",
          "[transport][probe][fault]") {
  auto words = std::as_bytes(std::span("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"));
  std::vector<std::byte> garbage(answer_size);
  for (std::size_t i = 0; i < garbage.size(); ++i) garbage[i] = words[i % words.size()];
  SECTION("garbage for an answer") {
    odd_peer peer([&](auto& guest) { guest.write(garbage), stay(guest); });
    CHECK_THAT(failure(peer.port(), errc::protocol), Catch::Contains("\"HTTP\""));
  }
  SECTION("nothing at all") {
    odd_peer peer([&](auto& guest) { stay(guest); });
    auto hasty = quick();
    hasty.probe.deadline = 200ms;
    auto begun = clock::now();
    CHECK_THAT(failure(peer.port(), errc::timeout, hasty), Catch::Contains("in time"));
    CHECK(clock::now() - begun < 5s);
  }
  SECTION("it accepts and goes") {
    odd_peer peer([&](auto& guest) {
      take(guest, hello_size);
      guest.write(encode_acceptance());
      take(guest, frame_header_size);
    });
    failure(peer.port(), errc::unreachable);
  }
  SECTION("it accepts and answers garbage") {
    odd_peer peer([&](auto& guest) {
      take(guest, hello_size);
      guest.write(encode_acceptance());
      guest.write(garbage);
      stay(guest);
    });
    failure(peer.port(), errc::protocol);
  }
  SECTION("it answers another size, or another question") {
    auto wrong = GENERATE(frame_of(8, 1), frame_of(4, 7), frame_of(probe_bytes_max + 1, 1));
    odd_peer peer([&](auto& guest) {
      take(guest, hello_size);
      guest.write(encode_acceptance());
      guest.write(encode(wrong));
      stay(guest);
    });
    failure(peer.port(), errc::protocol);
  }
  SECTION("its payload is damaged") {
    odd_peer peer([&](auto& guest) {
      take(guest, hello_size);
      guest.write(encode_acceptance());
      guest.write(encode(frame_of(4, 1)));
      guest.write(std::span(garbage).first(4 + frame_trailer_size));
      stay(guest);
    });
    CHECK_THAT(failure(peer.port(), errc::damaged), Catch::Contains("hash"));
  }
  SECTION("it closes with a reason") {
    odd_peer peer([&](auto& guest) {
      take(guest, hello_size);
      guest.write(encode_acceptance());
      guest.write(encode_refusal({errc::refused, "I have had enough"}));
      stay(guest);
    });
    CHECK_THAT(failure(peer.port(), errc::refused), Catch::Contains("I have had enough"));
  }
}

TEST_CASE("an answerer sends odd askers away and goes on", "[transport][probe][fault]") {
  answerer_options hasty;
  hasty.hello_timeout = 200ms;
  hasty.silence_max = 200ms;
  answering peer(hasty);
  std::optional<raw_peer> there(peer.port());
  auto& guest = *there;
  auto greet = [&] {
    auto answer = guest.greet({.job = job, .from = probe_asker, .to = probe_answerer_name});
    REQUIRE((answer && *answer));
  };
  SECTION("who says nothing") { CHECK_THAT(peer.told(), Catch::Contains("in time")); }
  SECTION("who talks of something else") {
    guest.write("GET / HTTP/1.1\r\n\r\n"sv);
    CHECK_THAT(peer.told(), Catch::Contains("\"GET \""));
  }
  SECTION("who greets and falls silent") {
    greet();
    CHECK_THAT(peer.told(), Catch::Contains("in time"));
  }
  SECTION("who asks for too much") {
    greet();
    guest.write(encode(frame_of(4, 1, UINT32_MAX)));
    CHECK_THAT(peer.told(), Catch::Contains("expected at most " + std::to_string(probe_bytes_max)));
  }
  SECTION("who sends too much") {
    greet();
    guest.write(encode(frame_of(probe_bytes_max + 1, 1)));
    CHECK_THAT(peer.told(), Catch::Contains("expected at most"));
  }
  SECTION("who leaves in the middle") {
    greet();
    guest.write(encode(frame_of(1000, 1)));
    there.reset();
    CHECK_THAT(peer.told(), Catch::Contains("closed"));
  }
  there.reset();
  CHECK(probe_peer("127.0.0.1", peer.port(), quick()));
}

TEST_CASE("an answerer ends at its deadline, with and without an asker", "[transport][probe]") {
  auto at = listen_tcp("127.0.0.1", 0);
  REQUIRE(at);
  probe_answerer answerer({.job = job}, std::move(*at));
  std::optional<raw_peer> guest;
  if (GENERATE(false, true)) guest.emplace(answerer.port());
  auto begun = clock::now();
  CHECK(answerer.run(begun + 300ms));
  CHECK(clock::now() - begun < 5s);
}
