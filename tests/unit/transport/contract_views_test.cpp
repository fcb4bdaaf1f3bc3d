// What every tensor plane promises, tried on both: views, halts, and the ends of peers.

#include <atomic>
#include <future>

#include "unit/transport/nodes.hpp"

using namespace shoal;
using namespace shoal::transport;
using namespace shoal::transport::testing;
using core::frame_kind;

TEMPLATE_TEST_CASE("a halt with traffic in flight ends it at once, and the next view works",
                   "[transport]", tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2);
  open_all(1, {ann.get(), bob.get()});
  for (std::uint64_t view = 1; view <= 5; ++view) {
    std::weak_ptr<void> last;
    for (std::uint32_t i = 0; i < 50; ++i) {
      auto bytes = payload_of(1 << 20, i);
      last = bytes.owner;
      ann->send(*bob, view, frame_kind::activation, i, std::move(bytes));
    }
    REQUIRE(bob->sink.wait_arrivals(1));
    bob->plane->halt();
    auto seen = bob->sink.arrivals().size();
    ann->plane->halt();
    open_all(view + 1, {ann.get(), bob.get()});
    CHECK(bob->sink.arrivals().size() == seen);
    ann->send(*bob, view + 1, frame_kind::activation, 99, payload_of(100, 99));
    REQUIRE(bob->sink.wait_arrivals(seen + 1));
    CHECK(last.expired());  // the plane has let go of what it had not begun
    auto got = bob->sink.arrivals().back();
    CHECK(got.header.view == view_id{view + 1});
    CHECK(got.header.micro_batch == 99);
    CHECK(ann->sink.broken_count() + bob->sink.broken_count() == 0);
    ann->sink.forget();
    bob->sink.forget();
  }
}

TEMPLATE_TEST_CASE("a halt waits for the call to the sink that is running", "[transport]",
                   tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2);
  open_all(1, {ann.get(), bob.get()});
  std::promise<void> entered, go;
  std::atomic<bool> inside = false;
  bob->sink.on_arrival([&, once = std::make_shared<std::atomic<bool>>(false)] {
    if (once->exchange(true)) return;
    inside = true;
    entered.set_value();
    go.get_future().wait();
    inside = false;
  });
  for (std::uint32_t i = 0; i < 10; ++i)
    ann->send(*bob, 1, frame_kind::activation, i, payload_of(10, i));
  entered.get_future().wait();
  auto halted = std::async(std::launch::async, [&] {
    bob->plane->halt();
    return inside.load();
  });
  CHECK(halted.wait_for(20ms) == std::future_status::timeout);
  go.set_value();
  CHECK_FALSE(halted.get());
  auto seen = bob->sink.arrivals().size();
  open_all(2, {ann.get(), bob.get()});
  ann->send(*bob, 2, frame_kind::activation, 77,
            payload_of(10, 1));  // behind what is left of view 1
  REQUIRE(bob->sink.wait_arrivals(seen + 1));
  CHECK(bob->sink.arrivals().back().header.micro_batch == 77);
  CHECK(bob->sink.arrivals().size() == seen + 1);
}

TEMPLATE_TEST_CASE("frames of an ended view never arrive, although their sender goes on",
                   "[transport]", tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2);
  open_all(1, {ann.get(), bob.get()});
  for (std::uint32_t i = 0; i < 20; ++i)
    ann->send(*bob, 1, frame_kind::activation, i, payload_of(200000, i));
  REQUIRE(bob->sink.wait_arrivals(1));
  bob->plane->halt();
  bob->sink.forget();
  for (std::uint32_t i = 20; i < 40; ++i)
    ann->send(*bob, 1, frame_kind::activation, i, payload_of(200000, i));
  bob->open(2, {ann->member()});
  REQUIRE(bob->sink.wait_opened(2));
  // Ann follows; her first frame of view 2 comes behind whatever was left of view 1.
  ann->open(2, {bob->member()});
  ann->send(*bob, 2, frame_kind::activation, 1, payload_of(10, 1));
  REQUIRE(bob->sink.wait_arrivals(1));
  for (auto& a : bob->sink.arrivals()) CHECK(a.header.view == view_id{2});
}

TEMPLATE_TEST_CASE("a send of another view than the open one goes nowhere", "[transport]",
                   tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2);
  open_all(4, {ann.get(), bob.get()});
  ann->send(*bob, 3, frame_kind::activation, 1, payload_of(10, 1));
  ann->send(*bob, 5, frame_kind::activation, 2, payload_of(10, 1));
  ann->send(*bob, 4, frame_kind::activation, 3, payload_of(10, 1));
  REQUIRE(bob->sink.wait_arrivals(1));
  CHECK(bob->sink.arrivals()[0].header.micro_batch == 3);
  CHECK(bob->sink.wait_admits(1));
}

TEMPLATE_TEST_CASE("a peer that opens the view first is judged by the sink, and heard after open",
                   "[transport]", tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2);
  std::atomic<std::uint64_t> bobs_view = 1;
  bob->sink.judge([&](node_id, const core::frame_header& h) {
    return h.view.value > bobs_view ? answer::later : answer::take;
  });
  open_all(1, {ann.get(), bob.get()});
  ann->open(2, {bob->member()});
  ann->send(*bob, 2, frame_kind::activation, 5, payload_of(70000, 5));
  REQUIRE(bob->sink.wait_admits(1));
  bob->plane->halt();
  bobs_view = 2;
  bob->open(2, {ann->member()});  // asks again by itself
  REQUIRE(bob->sink.wait_arrivals(1));
  CHECK(equal(bob->sink.arrivals()[0].payload, payload_of(70000, 5)));
}

TEMPLATE_TEST_CASE("a newcomer that dials before its peer has opened anything is heard",
                   "[transport]", tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2);
  std::atomic<bool> ready = false;
  bob->sink.judge(
    [&](node_id, const core::frame_header&) { return ready ? answer::take : answer::later; });
  ann->open(9, {bob->member()});
  REQUIRE(ann->sink.wait_opened(9));
  ann->send(*bob, 9, frame_kind::partial, 1, payload_of(10, 1));
  REQUIRE(bob->sink.wait_admits(1));
  ready = true;
  bob->open(9, {ann->member()});
  CHECK(bob->sink.wait_arrivals(1));
}

TEMPLATE_TEST_CASE("the death of a peer breaks it for those who count on it, once", "[transport]",
                   tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2), cid = world.make(3);
  open_all(1, {ann.get(), bob.get(), cid.get()});
  for (std::uint32_t i = 0; i < 30; ++i)
    ann->send(*bob, 1, frame_kind::activation, i, payload_of(1 << 20, i));
  auto begun = std::chrono::steady_clock::now();
  bob->plane = nullptr;
  for (auto* n : {ann.get(), cid.get()}) {
    auto why = n->sink.wait_broken(2);
    REQUIRE(why);
    CHECK(why->code == errc::unreachable);
  }
  CHECK(std::chrono::steady_clock::now() - begun < 5s);
  ann->send(*bob, 1, frame_kind::activation, 1, payload_of(10, 1));  // dropped
  ann->send(*cid, 1, frame_kind::activation, 2, payload_of(10, 1));
  REQUIRE(cid->sink.wait_arrivals(1));
  CHECK(ann->sink.broken_count() == 1);
  CHECK(cid->sink.broken_count() == 1);
}

TEMPLATE_TEST_CASE("a peer that dies after the halt is reported by the next view that needs it",
                   "[transport]", tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2), cid = world.make(3);
  open_all(1, {ann.get(), bob.get(), cid.get()});
  ann->plane->halt();
  auto gone = bob->member();
  bob->plane = nullptr;
  REQUIRE(cid->sink.wait_broken(2));
  CHECK(ann->sink.broken_count() == 0);
  ann->open(2, {gone, cid->member()}, 50ms);
  REQUIRE(ann->sink.wait_broken(2));
}

TEMPLATE_TEST_CASE("a peer that nobody answers for is broken at the deadline, by name and address",
                   "[transport]", tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2);
  auto gone = bob->member();
  bob->plane = nullptr;
  ann->open(1, {gone}, 60ms);
  auto why = ann->sink.wait_broken(2);
  REQUIRE(why);
  CHECK(retryable(why->code));
  CHECK_THAT(why->text, Catch::Contains("node 2") &&
                          Catch::Contains("127.0.0.1:" + std::to_string(gone.at.tensor_port)));
}

TEMPLATE_TEST_CASE("a node that is not in the next view is left without complaint", "[transport]",
                   tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2), cid = world.make(3);
  open_all(1, {ann.get(), bob.get(), cid.get()});
  // Bob is still in view 1 and must not take the others' moving on for their death.
  for (auto* n : {ann.get(), cid.get()}) n->plane->halt();
  open_all(2, {ann.get(), cid.get()});
  ann->send(*cid, 2, frame_kind::activation, 1, payload_of(10, 1));
  REQUIRE(cid->sink.wait_arrivals(1));
  // And is back in view 3.
  open_all(3, {ann.get(), bob.get(), cid.get()});
  ann->send(*bob, 3, frame_kind::activation, 2, payload_of(10, 1));
  bob->send(*cid, 3, frame_kind::activation, 3, payload_of(10, 1));
  CHECK(bob->sink.wait_arrivals(1));
  CHECK(cid->sink.wait_arrivals(2));
  for (auto* n : {ann.get(), bob.get(), cid.get()}) CHECK(n->sink.broken_count() == 0);
}

TEMPLATE_TEST_CASE("a peer's next life is another peer", "[transport]", tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2);
  open_all(1, {ann.get(), bob.get()});
  bob->plane = nullptr;
  REQUIRE(ann->sink.wait_broken(2));
  auto bob_again = world.make(2, 2);
  open_all(2, {ann.get(), bob_again.get()});
  bob_again->send(*ann, 2, frame_kind::activation, 1, payload_of(10, 1));
  ann->send(*bob_again, 2, frame_kind::activation, 1, payload_of(10, 1));
  CHECK(ann->sink.wait_arrivals(1));
  CHECK(bob_again->sink.wait_arrivals(1));
}

TEMPLATE_TEST_CASE("a view without peers is open", "[transport]", tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1);
  ann->open(3, {});
  CHECK(ann->sink.wait_opened(3));
}

TEMPLATE_TEST_CASE("a frame over the limit, or to nobody, breaks with the reason", "[transport]",
                   tcp_world, memory_world) {
  TestType world(world_options{.frame_bytes_max = 1000});
  auto ann = world.make(1), bob = world.make(2);
  open_all(1, {ann.get(), bob.get()});
  ann->send(*bob, 1, frame_kind::activation, 1, payload_of(1001, 1));
  auto why = ann->sink.wait_broken(2);
  REQUIRE(why);
  CHECK_THAT(why->text, Catch::Contains("at most 1000") && Catch::Contains("frame_bytes_max"));

  auto nobody = world.make(77);
  ann->send(*nobody, 1, frame_kind::activation, 1, payload_of(10, 1));
  why = ann->sink.wait_broken(77);
  REQUIRE(why);
  CHECK_THAT(why->text, Catch::Contains("node 77"));
}

TEMPLATE_TEST_CASE("a queue that a peer does not read ends at its limit", "[transport]", tcp_world,
                   memory_world) {
  TestType world(world_options{.queue_bytes_max = 8 << 20});
  auto ann = world.make(1), bob = world.make(2);
  bob->sink.judge([](node_id, const core::frame_header&) { return answer::later; });
  open_all(1, {ann.get(), bob.get()});
  std::weak_ptr<void> queued;
  for (std::uint32_t i = 0; i < 64; ++i) {  // beyond what the sockets hold
    auto bytes = payload_of(1 << 20, 1);
    queued = bytes.owner;
    ann->send(*bob, 1, i % 2 ? frame_kind::activation : frame_kind::partial, i, std::move(bytes));
  }
  auto why = ann->sink.wait_broken(2);
  REQUIRE(why);
  CHECK(why->code == errc::no_memory);
  CHECK_THAT(why->text, Catch::Contains("8388608 bytes wait"));
}

TEMPLATE_TEST_CASE("halts, opens and sends from several threads never hang", "[transport]",
                   tcp_world, memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2);
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (auto [from, to] : {std::pair{ann.get(), bob.get()}, std::pair{bob.get(), ann.get()}})
    threads.emplace_back([&done, from = from, to = to] {
      for (std::uint32_t i = 0; !done; ++i) {
        for (std::uint64_t view = 1; view <= 30; ++view)
          from->send(*to, view, frame_kind::activation, i, payload_of(3000, i));
        from->plane->resume(to->who.node);
        std::this_thread::yield();
      }
    });
  for (std::uint64_t view = 1; view <= 30; ++view) {
    open_all(view, {ann.get(), bob.get()});
    ann->plane->halt();
    bob->plane->halt();
  }
  done = true;
  for (auto& t : threads) t.join();
  CHECK(ann->sink.broken_count() + bob->sink.broken_count() == 0);
}

TEMPLATE_TEST_CASE("after detach the sink is left alone, whatever comes", "[transport]", tcp_world,
                   memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2);
  open_all(1, {ann.get(), bob.get()});
  for (std::uint32_t i = 0; i < 20; ++i)
    ann->send(*bob, 1, frame_kind::activation, i, payload_of(100000, i));
  REQUIRE(bob->sink.wait_arrivals(1));
  bob->plane->detach();
  auto seen = bob->sink.arrivals().size();
  for (std::uint32_t i = 0; i < 20; ++i)
    ann->send(*bob, 1, frame_kind::activation, i, payload_of(100000, i));
  bob->send(*ann, 1, frame_kind::activation, 1, payload_of(10, 1));
  bob->plane->halt();
  bob->plane = nullptr;
  REQUIRE(ann->sink.wait_broken(2));
  CHECK(bob->sink.arrivals().size() == seen);
  CHECK(bob->sink.broken_count() == 0);
}

TEMPLATE_TEST_CASE("a halt reads and forgets what was told later", "[transport]", tcp_world,
                   memory_world) {
  TestType world;
  auto ann = world.make(1), bob = world.make(2);
  bob->sink.judge([](node_id, const core::frame_header&) { return answer::later; });
  open_all(1, {ann.get(), bob.get()});
  auto bytes = payload_of(32 << 20, 1);  // more than the sockets hold: stays with its sender
  std::weak_ptr<void> kept = bytes.owner;
  ann->send(*bob, 1, frame_kind::activation, 1, std::move(bytes));
  REQUIRE(bob->sink.wait_admits(1));
  bob->plane->halt();
  ann->plane->halt();
  // Ann comes to the next view with the old frame's rest still before her; Bob opens it later.
  bob->sink.judge([](node_id, const core::frame_header&) { return answer::take; });
  ann->open(2, {bob->member()});
  ann->send(*bob, 2, frame_kind::activation, 2, payload_of(10, 1));
  REQUIRE(bob->sink.wait_arrivals(1));
  CHECK(bob->sink.arrivals()[0].header.micro_batch == 2);
  CHECK(kept.expired());
}
