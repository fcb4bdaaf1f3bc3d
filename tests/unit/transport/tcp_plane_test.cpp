// What only the TCP plane has: ports, kept connections, lives of nodes, emulated links.

#include "unit/transport/nodes.hpp"
#include "unit/transport/raw_peer.hpp"

using namespace shoal;
using namespace shoal::transport;
using namespace shoal::transport::testing;
using core::frame_kind;

TEST_CASE("a port that is taken is named", "[transport][tcp]") {
  raw_listener taken;
  tcp_options options;
  options.port = taken.port();
  auto plane = make_tcp_plane(options);
  REQUIRE_FALSE(plane);
  CHECK(plane.error().code == errc::port_in_use);
  CHECK_THAT(plane.error().text, Catch::Contains("127.0.0.1:" + std::to_string(taken.port())));
}

TEST_CASE("a host that is not this machine's is named", "[transport][tcp]") {
  for (std::string host : {"203.0.113.9", "localhost", ""}) {
    auto at = listen_tcp(host, 0);
    REQUIRE_FALSE(at);
    CHECK(at.error().code == errc::config);
    CHECK_THAT(at.error().text, Catch::Contains(host));
  }
}

TEST_CASE("a port can listen before its plane exists, and those who dial meanwhile wait",
          "[transport][tcp]") {
  auto at = listen_tcp("127.0.0.1", 0);
  REQUIRE(at);
  auto port = at->port();
  tcp_world world;
  auto ann = world.make(1);
  ann->open(1, {core::member{{{2}, {1}}, {"127.0.0.1", 0, port}}});
  node bob;
  bob.who = {{2}, {1}};
  bob.plane = make_tcp_plane(world.tcp, *std::move(at));
  CHECK(bob.plane->port() == port);
  bob.plane->attach(bob.sink);
  bob.open(1, {ann->member()});
  CHECK(ann->sink.wait_opened(1));
  CHECK(bob.sink.wait_opened(1));
}

TEST_CASE("a listening port that no plane took is free again", "[transport][tcp]") {
  std::uint16_t port = 0;
  {
    auto at = listen_tcp("127.0.0.1", 0);
    REQUIRE(at);
    port = at->port();
  }
  CHECK(listen_tcp("127.0.0.1", port));
}

TEST_CASE("IPv6 loopback works as well", "[transport][tcp]") {
  tcp_options options;
  options.host = "::1";
  auto plane = make_tcp_plane(options);
  if (!plane) return;  // a machine without IPv6
  tcp_world world;
  auto ann = world.make(1);
  node bob;
  bob.who = {{2}, {1}};
  bob.plane = std::move(*plane);
  bob.plane->attach(bob.sink);
  bob.open(1, {ann->member()});
  ann->open(1, {core::member{bob.who, {"::1", 0, bob.plane->port()}}});
  CHECK(ann->sink.wait_opened(1));
}

TEST_CASE("connections to unchanged peers are kept, others are dialed anew", "[transport][tcp]") {
  tcp_world world;
  auto ann = world.make(1), bob = world.make(2), cid = world.make(3);
  open_all(1, {ann.get(), bob.get(), cid.get()});
  CHECK(world.log_count("is up") == 12);  // three pairs, both ways, two classes
  for (std::uint64_t view = 2; view < 10; ++view) {
    for (auto* n : {ann.get(), bob.get(), cid.get()}) n->plane->halt();
    open_all(view, {ann.get(), bob.get(), cid.get()});
  }
  CHECK(world.log_count("is up") == 12);
  open_all(10, {ann.get(), bob.get()});
  CHECK(world.log_count("is up") == 12);
  open_all(11, {ann.get(), bob.get(), cid.get()});
  CHECK(world.log_count("is up") == 16);  // to cid; his own to the others were only parked
  CHECK(ann->sink.broken_count() + bob->sink.broken_count() + cid->sink.broken_count() == 0);
}

TEST_CASE("a node that takes a new name greets anew, and its old connections end",
          "[transport][tcp]") {
  tcp_world world;
  auto ann = world.make(1), bob = world.make(2);
  open_all(1, {ann.get(), bob.get()});
  CHECK(world.log_count("is up") == 4);
  ann->plane->halt();
  bob->plane->halt();
  ann->who.incarnation = {2};
  open_all(2, {ann.get(), bob.get()});
  CHECK(world.log_count("is up") == 8);
  ann->send(*bob, 2, frame_kind::activation, 1, payload_of(10, 1));
  bob->send(*ann, 2, frame_kind::activation, 2, payload_of(10, 1));
  CHECK(bob->sink.wait_arrivals(1));
  CHECK(ann->sink.wait_arrivals(1));
  CHECK(ann->sink.broken_count() + bob->sink.broken_count() == 0);
}

TEST_CASE("a former life of a member is refused, and a later one breaks it", "[transport][tcp]") {
  tcp_world world;
  auto bob = world.make(2);
  auto life = [](std::uint64_t n) {
    return greeting{
      .job = 0, .from = {{9}, {n}}, .to = {{2}, {1}}, .direction = direction_class::bulk};
  };
  bob->open(1, {core::member{{{9}, {5}}, {"127.0.0.1", 0, raw_listener().port()}}});
  raw_peer present(bob->plane->port());
  auto accepted = present.greet(life(5));
  REQUIRE(accepted);
  REQUIRE(*accepted);

  auto former = raw_peer(bob->plane->port()).greet(life(4));
  REQUIRE(former);
  REQUIRE_FALSE(*former);
  CHECK(former->error().code == errc::refused);

  raw_peer later(bob->plane->port());
  accepted = later.greet(life(6));
  REQUIRE(accepted);
  CHECK(*accepted);
  auto why = bob->sink.wait_broken(9);
  REQUIRE(why);
  CHECK_THAT(why->text, Catch::Contains("incarnation 6"));
  CHECK(present.at_end());
}

TEST_CASE("a dialer that asks for a former life of this node is refused for good",
          "[transport][tcp]") {
  tcp_world world;
  auto ann = world.make(1), bob = world.make(2, 3);
  bob->open(1, {});
  ann->open(1, {core::member{{{2}, {2}}, bob->member().at}});
  auto why = ann->sink.wait_broken(2);
  REQUIRE(why);
  CHECK(why->code == errc::refused);
  CHECK_THAT(why->text, Catch::Contains("incarnation 3"));
}

TEST_CASE("an emulated link delays and paces what is sent, and a halt empties it",
          "[transport][tcp]") {
  tcp_world world;
  world.tcp.emulate = {.rate = {10e6}, .delay = 5ms};  // 10 MB/s
  auto ann = world.make(1), bob = world.make(2);
  open_all(1, {ann.get(), bob.get()});
  auto begun = std::chrono::steady_clock::now();
  for (std::uint32_t i = 0; i < 4; ++i)
    ann->send(*bob, 1, i % 2 ? frame_kind::activation : frame_kind::partial, i,
              payload_of(100000, i));
  REQUIRE(bob->sink.wait_arrivals(4));
  CHECK(std::chrono::steady_clock::now() - begun >= 45ms);  // 4 x 10 ms on one link, and the delay
  auto got = bob->sink.arrivals();
  for (std::uint32_t i = 0; i < 4; ++i)
    CHECK(got[i].header.micro_batch == i);  // one link for both classes

  ann->send(*bob, 1, frame_kind::partial, 0, payload_of(100 << 20, 1));  // ten seconds of link
  ann->plane->halt();
  bob->plane->halt();
  bob->sink.forget();
  open_all(2, {ann.get(), bob.get()});
  begun = std::chrono::steady_clock::now();
  ann->send(*bob, 2, frame_kind::activation, 5, payload_of(1000, 5));
  REQUIRE(bob->sink.wait_arrivals(1));
  CHECK(std::chrono::steady_clock::now() - begun < 5s);
}

TEST_CASE("a halt lets the rest of a frame that has begun go without pace", "[transport][tcp]") {
  tcp_world world;
  world.tcp.emulate = {.rate = {1e6}};
  auto ann = world.make(1), bob = world.make(2);
  open_all(1, {ann.get(), bob.get()});
  ann->send(*bob, 1, frame_kind::activation, 0, payload_of(100 << 20, 1));  // 100 s of link
  REQUIRE(bob->sink.wait_admits(1));                                        // it has begun
  ann->plane->halt();
  bob->plane->halt();
  bob->sink.forget();
  open_all(2, {ann.get(), bob.get()});
  auto begun = std::chrono::steady_clock::now();
  ann->send(*bob, 2, frame_kind::activation, 5, payload_of(1000, 5));
  REQUIRE(bob->sink.wait_arrivals(1));
  CHECK(std::chrono::steady_clock::now() - begun < 5s);
  CHECK(bob->sink.arrivals()[0].header.micro_batch == 5);
}

TEST_CASE("frames over an emulated link arrive whole and in order, whatever their sizes",
          "[transport][tcp]") {
  tcp_world world;
  world.tcp.emulate = {.rate = {50e6}, .delay = 1ms};
  auto ann = world.make(1), bob = world.make(2);
  open_all(1, {ann.get(), bob.get()});
  const std::size_t sizes[] = {0, 1, 65535, 65536, 65537, 262144, 262145, 1000003};
  for (std::uint32_t i = 0; i < std::size(sizes); ++i)
    ann->send(*bob, 1, frame_kind::activation, i, payload_of(sizes[i], i));
  REQUIRE(bob->sink.wait_arrivals(std::size(sizes)));
  auto got = bob->sink.arrivals();
  for (std::uint32_t i = 0; i < std::size(sizes); ++i) {
    CHECK(got[i].header.micro_batch == i);
    CHECK(equal(got[i].payload, payload_of(sizes[i], i)));
  }
}

TEST_CASE(
  "an emulated link is measured: its rate within a fifth, by the receiver, its way by the sender",
  "[transport][tcp][link_meter]") {
  for (double mbit : {100., 400.}) {
    tcp_world world;
    world.tcp.emulate = {.rate = {mbit * 1e6 / 8}, .delay = 5ms};
    auto ann = world.make(1), bob = world.make(2);
    open_all(1, {ann.get(), bob.get()});
    CHECK(bob->plane->links().empty());
    for (std::uint32_t i = 0; i < 12; ++i)  // isolated ones, queued ones, both connections
      ann->send(*bob, 1, i % 3 ? frame_kind::activation : frame_kind::partial, i,
                payload_of(i % 2 ? 100'000 : 500'000, i));
    REQUIRE(bob->sink.wait_arrivals(12));
    for (std::uint32_t i = 0; i < 4; ++i) {
      ann->send(*bob, 1, frame_kind::activation, i, payload_of(300'000, i));
      REQUIRE(bob->sink.wait_arrivals(13 + i));
    }
    auto in = bob->plane->links(), out = ann->plane->links();
    REQUIRE(in.size() == 1);
    CHECK(in[0].peer == node_id{1});
    CHECK(in[0].figures.one_way_ns == 0);  // nothing went there
    auto measured = static_cast<double>(in[0].figures.bytes_per_s) * 8 / 1e6;
    INFO("emulated " << mbit << " Mbit/s, measured " << measured);
    CHECK(measured == Approx(mbit).epsilon(0.2));
    REQUIRE(out.size() == 1);
    CHECK(out[0].peer == node_id{2});
    CHECK(out[0].figures.bytes_per_s == 0);  // nothing came from there
    // The emulated delay, and loopback's way, which has no upper bound on a busy machine.
    CHECK(out[0].figures.one_way_ns > 5'000'000);
    CHECK(out[0].figures.one_way_ns < 100'000'000);
    open_all(2, {bob.get()});
    CHECK(bob->plane->links().empty());  // it is no peer any more
  }
}
