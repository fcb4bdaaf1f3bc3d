// What every tensor plane promises, tried on both: frames and their order, and the sink's answers.

#include "unit/transport/nodes.hpp"

#include "transport/frame.hpp"

using namespace shoal;
using namespace shoal::transport;
using namespace shoal::transport::testing;
using core::frame_kind;

TEMPLATE_TEST_CASE("payloads of every size arrive intact", "[transport]", tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2);
  open_all(1, {ann.get(), bob.get()});
  std::vector<std::size_t> sizes{
    0,       1, 7, 8, 112, 4095, 65536, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, (1 << 20) + 7,
    16 << 20};
  std::vector<core::shared_bytes> sent;
  for (std::uint32_t i = 0; i < sizes.size(); ++i) {
    sent.push_back(payload_of(sizes[i], i));
    ann->send(*bob, 1, frame_kind::activation, i, sent.back());
  }
  REQUIRE(bob->sink.wait_arrivals(sizes.size()));
  auto got = bob->sink.arrivals();
  for (std::uint32_t i = 0; i < sizes.size(); ++i) {
    CAPTURE(sizes[i]);
    CHECK(got[i].from == ann->who.node);
    CHECK(got[i].header.micro_batch == i);
    CHECK(got[i].header.step == step_id{7});
    CHECK(got[i].header.shape == std::vector<std::int64_t>{static_cast<std::int64_t>(sizes[i])});
    CHECK(equal(got[i].payload, sent[i]));
  }
  CHECK(ann->plane->traffic().first >= 17u << 20);
  CHECK(bob->plane->traffic().second >= 17u << 20);
}

TEMPLATE_TEST_CASE("every field of a header arrives", "[transport]", tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2);
  open_all(5, {ann.get(), bob.get()});
  core::frame_header header{.view = {5},
                            .step = {1ull << 40},
                            .kind = frame_kind::total,
                            .block = 511,
                            .micro_batch = 2047,
                            .part = 12,
                            .scalar = core::scalar_kind::f64,
                            .shape = {2, 1, 3, 1, 1, 2},
                            .bytes = 96};
  ann->plane->send(bob->who.node, header, payload_of(96, 1));
  REQUIRE(bob->sink.wait_arrivals(1));
  auto got = bob->sink.arrivals()[0].header;
  CHECK(got.view == header.view);
  CHECK(got.step == header.step);
  CHECK(got.kind == header.kind);
  CHECK(got.block == header.block);
  CHECK(got.micro_batch == header.micro_batch);
  CHECK(got.part == header.part);
  CHECK(got.scalar == header.scalar);
  CHECK(got.shape == header.shape);
  CHECK(got.bytes == header.bytes);
}

TEMPLATE_TEST_CASE("frames of one class arrive in order, whatever the other class does",
                   "[transport]", tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2);
  open_all(1, {ann.get(), bob.get()});
  std::mt19937 random(7);
  constexpr std::uint32_t count = 200;
  for (std::uint32_t i = 0; i < count; ++i) {
    ann->send(*bob, 1, i % 3 ? frame_kind::activation : frame_kind::validation, i,
              payload_of(random() % 5000, i));
    ann->send(*bob, 1, i % 3 ? frame_kind::partial : frame_kind::state, i,
              payload_of(random() % 50000, i));
  }
  REQUIRE(bob->sink.wait_arrivals(2 * count));
  std::map<direction_class, std::vector<std::uint32_t>> order;
  for (auto& a : bob->sink.arrivals())
    order[class_of(a.header.kind)].push_back(a.header.micro_batch);
  for (auto& [direction, numbers] : order) {
    CAPTURE(to_string(direction));
    CHECK(numbers.size() == count);
    CHECK(std::ranges::is_sorted(numbers));
  }
}

TEMPLATE_TEST_CASE("a frame sent before the connection is up waits for it", "[transport]",
                   tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2);
  ann->open(1, {bob->member()});
  ann->send(*bob, 1, frame_kind::gradient, 4, payload_of(1000, 1));
  bob->open(1, {ann->member()});
  REQUIRE(bob->sink.wait_arrivals(1));
  CHECK(bob->sink.arrivals()[0].header.micro_batch == 4);
}

TEMPLATE_TEST_CASE("a frame told later is offered again after resume, and hinders nobody else",
                   "[transport]", tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2), cid = world.make(3);
  std::atomic<bool> room_left = false;
  bob->sink.judge([&](node_id from, const core::frame_header& h) {
    return from == node_id{1} && h.kind == frame_kind::activation && !room_left ? answer::later
                                                                                : answer::take;
  });
  open_all(1, {ann.get(), bob.get(), cid.get()});
  for (std::uint32_t i = 0; i < 5; ++i)
    ann->send(*bob, 1, frame_kind::activation, i, payload_of(100000, i));
  REQUIRE(bob->sink.wait_admits(1));
  ann->send(*bob, 1, frame_kind::partial, 10, payload_of(10, 1));
  cid->send(*bob, 1, frame_kind::activation, 20, payload_of(10, 2));
  REQUIRE(bob->sink.wait_arrivals(2));
  for (auto& a : bob->sink.arrivals()) CHECK(a.header.micro_batch >= 10);

  bob->plane->resume(ann->who.node);  // still no room: asked again, and again told later
  REQUIRE(bob->sink.wait_admits(4));
  CHECK(bob->sink.arrivals().size() == 2);
  room_left = true;
  bob->plane->resume(ann->who.node);
  REQUIRE(bob->sink.wait_arrivals(7));
  auto got = bob->sink.arrivals();
  for (std::uint32_t i = 0; i < 5; ++i) {
    CHECK(got[2 + i].header.micro_batch == i);
    CHECK(equal(got[2 + i].payload, payload_of(100000, i)));
  }
}

TEMPLATE_TEST_CASE("resume may be called from the sink", "[transport]", tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2);
  std::atomic<int> asked = 0;
  bob->sink.judge([&](node_id from, const core::frame_header&) {
    if (++asked > 1) return answer::take;
    bob->plane->resume(from);  // before the answer is even given: must not be lost
    return answer::later;
  });
  open_all(1, {ann.get(), bob.get()});
  ann->send(*bob, 1, frame_kind::activation, 0, payload_of(10, 1));
  CHECK(bob->sink.wait_arrivals(1));
}

TEMPLATE_TEST_CASE("a dropped frame is read and forgotten, the next one arrives", "[transport]",
                   tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2);
  bob->sink.judge([](node_id, const core::frame_header& h) {
    return h.micro_batch < 3 ? answer::drop : answer::take;
  });
  open_all(1, {ann.get(), bob.get()});
  std::vector<std::size_t> sizes{0, 10, 3 << 20, 5000};
  for (std::uint32_t i = 0; i < 4; ++i)
    ann->send(*bob, 1, frame_kind::state, i, payload_of(sizes[i], i));
  REQUIRE(bob->sink.wait_arrivals(1));
  CHECK(bob->sink.arrivals()[0].header.micro_batch == 3);
  CHECK(equal(bob->sink.arrivals()[0].payload, payload_of(5000, 3)));
}

TEMPLATE_TEST_CASE("a refusal closes the connection and tells both ends why", "[transport]",
                   tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2), cid = world.make(3);
  bob->sink.judge([](node_id, const core::frame_header& h) {
    return h.micro_batch == 9 ? answer::refuse : answer::take;
  });
  open_all(1, {ann.get(), bob.get(), cid.get()});
  // More on the way behind the refused one: it must not swallow the reason.
  for (std::uint32_t i = 9; i < 14; ++i)
    ann->send(*bob, 1, frame_kind::activation, i, payload_of(4 << 20, i));
  auto ann_heard = ann->sink.wait_broken(2), bob_heard = bob->sink.wait_broken(1);
  REQUIRE(ann_heard);
  REQUIRE(bob_heard);
  CHECK(ann_heard->code == errc::protocol);
  CHECK_THAT(ann_heard->text,
             Catch::Contains("the test says no") && Catch::Contains("activation of block 3"));
  CHECK_THAT(bob_heard->text, Catch::Contains("the test says no"));
  cid->send(*bob, 1, frame_kind::activation, 1, payload_of(10, 1));
  REQUIRE(bob->sink.wait_arrivals(1));
  CHECK(bob->sink.arrivals()[0].from == cid->who.node);
  CHECK(ann->sink.broken_count() == 1);
  CHECK(bob->sink.broken_count() == 1);
}

TEMPLATE_TEST_CASE("a state request has no payload", "[transport]", tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2);
  open_all(1, {ann.get(), bob.get()});
  ann->plane->send(
    bob->who.node,
    {.view = {1}, .step = {3}, .kind = frame_kind::state_request, .block = 2, .shape = {}}, {});
  REQUIRE(bob->sink.wait_arrivals(1));
  CHECK(bob->sink.arrivals()[0].header.kind == frame_kind::state_request);
  CHECK(bob->sink.arrivals()[0].payload.size == 0);
}

TEMPLATE_TEST_CASE("eight nodes all speak to all", "[transport]", tcp_world, memory_world) {
  TestType world;
  std::vector<std::unique_ptr<node>> nodes;
  std::vector<node*> all;
  for (std::uint64_t id = 1; id <= 8; ++id) all.push_back(nodes.emplace_back(world.make(id)).get());
  open_all(1, all);
  constexpr std::uint32_t rounds = 20;
  for (std::uint32_t i = 0; i < rounds; ++i)
    for (auto* from : all)
      for (auto* to : all)
        if (from != to)
          from->send(*to, 1, i % 2 ? frame_kind::partial : frame_kind::gradient, i,
                     payload_of(2000, from->who.node.value * 100 + i));
  for (auto* n : all) {
    REQUIRE(n->sink.wait_arrivals(7 * rounds));
    auto got = n->sink.arrivals();
    CHECK(got.size() == 7 * rounds);
    for (auto& a : got)
      CHECK(equal(a.payload, payload_of(2000, a.from.value * 100 + a.header.micro_batch)));
  }
}
