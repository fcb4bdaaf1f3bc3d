// What a TCP plane does with peers that speak wrongly, slowly or not at all.

#include "transport/wire.hpp"
#include "unit/transport/nodes.hpp"
#include "unit/transport/raw_peer.hpp"

using namespace shoal;
using namespace shoal::transport;
using namespace shoal::transport::testing;
using core::frame_kind;

namespace {

/// Two nodes in view 1 that must go on whatever strangers do.
struct couple {
  tcp_world world;
  std::unique_ptr<node> ann, bob;

  explicit couple(tcp_options options = {}) {
    world.tcp = options;
    ann = world.make(1);
    bob = world.make(2);
    open_all(1, {ann.get(), bob.get()});
  }
  std::uint16_t port() const { return bob->plane->port(); }
  void check_unharmed() {
    auto before = bob->sink.arrivals().size();
    ann->send(*bob, 1, frame_kind::activation, 1, payload_of(300000, 1));
    ann->send(*bob, 1, frame_kind::partial, 1, payload_of(300000, 1));
    CHECK(bob->sink.wait_arrivals(before + 2));
    CHECK(ann->sink.broken_count() + bob->sink.broken_count() == 0);
  }
};

greeting hello_from(std::uint64_t id, std::uint64_t incarnation = 1) {
  return {.job = 0,
          .from = {{id}, {incarnation}},
          .to = {{2}, {1}},
          .direction = direction_class::pipeline};
}

}  // namespace

TEST_CASE("garbage on the tensor port gets one clear answer, is logged, and hurts nobody",
          "[transport][tcp]") {
  couple pair;
  for (std::string garbage : {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
                              std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03", 10),
                              std::string(1 << 20, '\0'), std::string(100000, 'S')}) {
    raw_peer stranger(pair.port());
    stranger.write(garbage);
    auto answer = stranger.read_answer();
    REQUIRE(answer);
    REQUIRE_FALSE(*answer);
    CHECK(answer->error().code == errc::protocol);
    CHECK_THAT(answer->error().text, Catch::Contains("begins with"));
    CHECK(stranger.at_end());
  }
  CHECK(pair.world.wait_log("\"GET \"", 1));
  CHECK(pair.world.wait_log("16 03 01 02", 1));
  CHECK(pair.world.wait_log("begins with", 4));
  pair.check_unharmed();
}

TEST_CASE("a hello of another version or job, or damaged, is refused with the reason",
          "[transport][tcp]") {
  tcp_options options;
  options.job = 42;
  couple pair(options);
  auto good = hello_from(1);
  good.job = 42;

  SECTION("version") {
    auto bytes = encode(good);
    put(bytes, 4, std::uint32_t{99});
    raw_peer peer(pair.port());
    peer.write(bytes);
    auto answer = peer.read_answer();
    REQUIRE(answer);
    REQUIRE_FALSE(*answer);
    CHECK(answer->error().code == errc::protocol);
    CHECK_THAT(answer->error().text,
               Catch::Contains("version 99, expected " + std::to_string(core::protocol_version)));
  }
  SECTION("job") {
    good.job = 43;
    auto answer = raw_peer(pair.port()).greet(good);
    REQUIRE(answer);
    REQUIRE_FALSE(*answer);
    CHECK(answer->error().code == errc::foreign);
    CHECK_THAT(answer->error().text, Catch::Contains("43") && Catch::Contains("42"));
  }
  SECTION("damaged") {
    auto bytes = encode(good);
    bytes[20] ^= std::byte{4};
    raw_peer peer(pair.port());
    peer.write(bytes);
    auto answer = peer.read_answer();
    REQUIRE(answer);
    REQUIRE_FALSE(*answer);
    CHECK(answer->error().code == errc::damaged);
  }
  SECTION("for another node") {
    good.to = {{7}, {1}};
    good.from = {{9}, {1}};
    auto answer = raw_peer(pair.port()).greet(good);
    REQUIRE(answer);
    REQUIRE_FALSE(*answer);
    CHECK_THAT(answer->error().text, Catch::Contains("node 7") && Catch::Contains("node 2"));
  }
  SECTION("under my own name") {
    good.from = {{2}, {1}};
    auto answer = raw_peer(pair.port()).greet(good);
    REQUIRE(answer);
    REQUIRE_FALSE(*answer);
    CHECK(answer->error().code == errc::protocol);
  }
  pair.check_unharmed();
}

TEST_CASE("a dialer with another job is told so, and does not try again", "[transport][tcp]") {
  tcp_world world;
  world.tcp.job = 1;
  auto bob = world.make(2);
  bob->open(1, {});
  world.tcp.job = 2;
  auto ann = world.make(1);
  ann->open(1, {bob->member()});
  auto why = ann->sink.wait_broken(2);
  REQUIRE(why);
  CHECK(why->code == errc::foreign);
  CHECK_THAT(why->text,
             Catch::Contains("node 2 at 127.0.0.1:") && Catch::Contains("same job file"));
}

TEST_CASE("a port that is not shoal's is named as such", "[transport][tcp]") {
  tcp_world world;
  auto ann = world.make(1);
  raw_listener web;
  ann->open(1, {core::member{{{2}, {1}}, {"127.0.0.1", 0, web.port()}}});
  auto first = web.accept();
  auto second = web.accept();
  for (auto* peer : {&first, &second})
    peer->write(std::string("HTTP/1.1 400 Bad Request\r\n\r\n") + std::string(600, ' '));
  auto why = ann->sink.wait_broken(2);
  REQUIRE(why);
  CHECK(why->code == errc::protocol);
  CHECK_THAT(why->text, Catch::Contains("\"HTTP\""));
}

TEST_CASE("a peer that takes the connection and says nothing is broken at the deadline",
          "[transport][tcp]") {
  tcp_world world;
  world.tcp.connect_timeout = 20ms;
  auto ann = world.make(1);
  raw_listener mute;
  ann->open(1, {core::member{{{2}, {1}}, {"127.0.0.1", 0, mute.port()}}}, 100ms);
  auto why = ann->sink.wait_broken(2);
  REQUIRE(why);
  CHECK(why->code == errc::timeout);
  CHECK_THAT(why->text, Catch::Contains("no answer in time"));
}

TEST_CASE("an endpoint that is not an address breaks at once", "[transport][tcp]") {
  tcp_world world;
  auto ann = world.make(1);
  ann->open(1, {core::member{{{2}, {1}}, {"no.such.host", 0, 4711}}});
  auto why = ann->sink.wait_broken(2);
  REQUIRE(why);
  CHECK_THAT(why->text, Catch::Contains("\"no.such.host\" is not a literal IP address"));
}

TEST_CASE("half-open, silent and slow strangers are sent away at the hello timeout",
          "[transport][tcp]") {
  tcp_options options;
  options.hello_timeout = 50ms;
  couple pair(options);
  raw_peer silent(pair.port()), slow(pair.port()), halfway(pair.port());
  auto hello = encode(hello_from(9));
  slow.write(std::span(hello).first(3));
  halfway.write(std::span(hello).first(60));
  pair.check_unharmed();
  CHECK(silent.at_end());
  CHECK(slow.at_end());
  CHECK(halfway.at_end());
  CHECK(pair.world.wait_log("no complete hello", 3));
  pair.check_unharmed();
}

TEST_CASE("beyond the limit the oldest stranger goes", "[transport][tcp]") {
  tcp_options options;
  options.stranger_count_max = 4;
  couple pair(options);
  std::vector<raw_peer> crowd;
  for (int i = 0; i < 8; ++i) crowd.emplace_back(pair.port());
  for (int i = 0; i < 4; ++i) CHECK(crowd[i].at_end());
  CHECK(pair.world.wait_log("too many connections without a hello", 4));
  auto late = crowd.back().greet(hello_from(9));
  REQUIRE(late);
  CHECK(*late);
  pair.check_unharmed();
}

TEST_CASE("connections from outside the view are parked up to a limit and a time",
          "[transport][tcp]") {
  tcp_options options;
  options.parked_count_max = 2;
  options.park_timeout = 100ms;
  couple pair(options);
  raw_peer first(pair.port()), second(pair.port()), third(pair.port());
  auto a = first.greet(hello_from(11)), b = second.greet(hello_from(12)),
       c = third.greet(hello_from(13));
  REQUIRE((a && b && c));
  CHECK(*a);
  CHECK(*b);
  REQUIRE_FALSE(*c);
  CHECK(c->error().code == errc::unreachable);
  for (auto* parked : {&first, &second}) {
    auto end = parked->read_answer();
    REQUIRE(end);
    CHECK(end->error().code == errc::timeout);
  }
  pair.check_unharmed();
}

TEST_CASE("a damaged header or payload breaks its sender, who is told", "[transport][tcp]") {
  tcp_world world;
  auto bob = world.make(2);
  auto as_node_9 = core::member{{{9}, {1}}, {"127.0.0.1", 0, raw_listener().port()}};
  bob->open(1, {as_node_9});
  raw_peer peer(bob->plane->port());
  auto greeted = peer.greet(hello_from(9));
  REQUIRE(greeted);
  REQUIRE(*greeted);
  auto header = encode(header_of(1, frame_kind::activation, 0, 16));
  std::vector<std::byte> body(16 + frame_trailer_size);
  put(body, 16, hash_of(std::span(body).first(16)));

  std::string expected;
  auto code = errc::damaged;
  SECTION("header") {
    header[30] ^= std::byte{1};
    expected = "frame header";
  }
  SECTION("payload") {
    body[5] ^= std::byte{1};
    expected = "payload of activation of block 3";
  }
  SECTION("hash") {
    body[17] ^= std::byte{1};
    expected = "payload of activation of block 3";
  }
  SECTION("garbage where a header should be") {
    header.fill(std::byte{'x'});
    expected = "begins with \"xxxx\"";
    code = errc::protocol;
  }
  peer.write(header);
  peer.write(body);
  auto end = peer.read_answer();
  REQUIRE(end);
  REQUIRE_FALSE(*end);
  CHECK(end->error().code == code);
  CHECK_THAT(end->error().text, Catch::Contains(expected));
  auto why = bob->sink.wait_broken(9);
  REQUIRE(why);
  CHECK(why->code == code);
  CHECK(bob->sink.arrivals().empty());
}

TEST_CASE("a peer that dies in the middle of a frame is broken", "[transport][tcp]") {
  tcp_world world;
  auto bob = world.make(2);
  bob->open(1, {core::member{{{9}, {1}}, {"127.0.0.1", 0, raw_listener().port()}}});
  {
    raw_peer peer(bob->plane->port());
    auto greeted = peer.greet(hello_from(9));
    REQUIRE(greeted);
    peer.write(encode(header_of(1, frame_kind::activation, 0, 1000)));
    peer.write(std::string(500, 'a'));
    REQUIRE(bob->sink.wait_admits(1));
  }
  auto why = bob->sink.wait_broken(9);
  REQUIRE(why);
  CHECK(why->code == errc::unreachable);
}

TEST_CASE("a halt lets go of the memory of a frame that is stuck half-way", "[transport][tcp]") {
  tcp_world world;
  auto bob = world.make(2);
  core::member nine{{{9}, {1}}, {"127.0.0.1", 0, raw_listener().port()}};
  bob->open(1, {nine});
  raw_peer peer(bob->plane->port());
  REQUIRE(peer.greet(hello_from(9)));
  peer.write(encode(header_of(1, frame_kind::activation, 0, 1000)));
  peer.write(std::string(500, 'a'));
  REQUIRE(bob->sink.wait_admits(1));
  bob->plane->halt();
  bob->open(2, {nine});
  // The rest comes late and is skipped, whatever it is; the connection goes on.
  peer.write(std::string(508, 'b'));
  peer.write(encode(header_of(2, frame_kind::activation, 1, 0)));
  std::array<std::byte, 8> hash;
  put(hash, 0, hash_of({}));
  peer.write(hash);
  REQUIRE(bob->sink.wait_arrivals(1));
  CHECK(bob->sink.arrivals()[0].header.micro_batch == 1);
  CHECK(bob->sink.first_room_is_free());
  CHECK(bob->sink.broken_count() == 0);
}
