// What only the memory plane has: a network that moves when the test says so.

#include "transport/memory_plane.hpp"

#include "unit/transport/nodes.hpp"

using namespace shoal;
using namespace shoal::transport;
using namespace shoal::transport::testing;
using core::frame_kind;

namespace {

struct pumped_pair {
  memory_hub hub{{.how = memory_hub::pace::pumped}};
  node ann, bob;

  pumped_pair() {
    for (auto [n, id] : {std::pair{&ann, 1u}, std::pair{&bob, 2u}}) {
      n->who = {{id}, {1}};
      n->plane = hub.make_plane();
      n->plane->attach(n->sink);
    }
  }
};

}  // namespace

TEST_CASE("nothing happens on a pumped network until it is pumped", "[transport][memory]") {
  pumped_pair pair;
  pair.ann.open(1, {pair.bob.member()});
  pair.bob.open(1, {pair.ann.member()});
  pair.ann.send(pair.bob, 1, frame_kind::activation, 1, payload_of(10, 1));
  CHECK(pair.bob.sink.arrivals().empty());
  CHECK(pair.hub.pump() > 0);
  CHECK(pair.bob.sink.arrivals().size() == 1);
  CHECK(pair.hub.pump() == 0);
}

TEST_CASE("the same calls give the same deliveries in the same order", "[transport][memory]") {
  auto run = [] {
    pumped_pair pair;
    pair.ann.open(1, {pair.bob.member()});
    pair.bob.open(1, {pair.ann.member()});
    for (std::uint32_t i = 0; i < 50; ++i)
      pair.ann.send(pair.bob, 1, i * i % 7 < 3 ? frame_kind::partial : frame_kind::activation, i,
                    payload_of(i, i));
    pair.hub.pump();
    std::vector<std::uint32_t> order;
    for (auto& a : pair.bob.sink.arrivals()) order.push_back(a.header.micro_batch);
    return order;
  };
  auto order = run();
  CHECK(order.size() == 50);
  CHECK(order == run());
}

TEST_CASE("on a pumped network a deadline passes when time is moved", "[transport][memory]") {
  pumped_pair pair;
  auto gone = pair.bob.member();
  gone.at.tensor_port = 999;
  pair.ann.open(1, {gone}, 10s);
  pair.hub.advance(9s);
  CHECK(pair.ann.sink.broken_count() == 0);
  pair.hub.advance(1s);
  CHECK(pair.ann.sink.broken_count() == 1);
}

TEST_CASE("a halt drops what a pumped network has not delivered", "[transport][memory]") {
  pumped_pair pair;
  pair.ann.open(1, {pair.bob.member()});
  pair.bob.open(1, {pair.ann.member()});
  pair.hub.pump();
  pair.ann.send(pair.bob, 1, frame_kind::activation, 1, payload_of(10, 1));
  pair.bob.plane->halt();
  pair.hub.pump();
  CHECK(pair.bob.sink.arrivals().empty());
}
