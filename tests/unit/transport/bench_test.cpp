// How fast the TCP plane is on loopback: `test_transport "[.bench]"`. Both ends run in this
// process. CPU time is given beside wall time because it also holds on a machine that is busy
// otherwise.

#include <ctime>

#include "unit/transport/nodes.hpp"

using namespace shoal;
using namespace shoal::transport;
using namespace shoal::transport::testing;
using core::frame_kind;

namespace {

/// Takes everything into the same memory, and counts.
class counting_sink : public core::tensor_sink {
public:
  explicit counting_sink(core::shared_bytes memory) : memory_(std::move(memory)) {}
  core::admission admit(node_id, const core::frame_header& header) override {
    return {
      .what = answer::take, .into = {memory_.data, header.bytes, memory_.owner}, .reason = {}};
  }
  void arrived(node_id, const core::frame_header&, core::shared_bytes) override {
    ++count_;
    count_.notify_one();
  }
  void broken(node_id, error why) override { FAIL(why.text); }
  void opened(view_id) override {}
  void wait(std::uint64_t count) const {
    for (auto now = count_.load(); now < count; now = count_.load()) count_.wait(now);
  }
  void restart() { count_ = 0; }

private:
  core::shared_bytes memory_;
  std::atomic<std::uint64_t> count_ = 0;
};

double cpu_s() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct end {
  counting_sink sink{room(16 << 20)};
  std::unique_ptr<core::tensor_plane> plane;
  core::sender who;
  explicit end(std::uint64_t id) : who{{id}, {1}} {
    auto made = make_tcp_plane(tcp_options{});
    REQUIRE(made);
    plane = *std::move(made);
    plane->attach(sink);
  }
  core::member member() const { return {who, {"127.0.0.1", 0, plane->port()}}; }
};

}  // namespace

TEST_CASE("the loopback's throughput and latency", "[.bench]") {
  end ann(1), bob(2);
  ann.plane->open({1}, ann.who, {bob.member()}, deadline);
  bob.plane->open({1}, bob.who, {ann.member()}, deadline);
  for (auto size : {4u << 10, 64u << 10, 1u << 20, 16u << 20}) {
    bob.sink.restart();
    auto count = std::min(20000u, static_cast<std::uint32_t>((2ull << 30) / size));
    auto bytes = payload_of(size, 1);
    auto begun = std::chrono::steady_clock::now();
    auto cpu = cpu_s();
    for (std::uint32_t i = 0; i < count; ++i)
      ann.plane->send(bob.who.node, header_of(1, frame_kind::activation, i, size), bytes);
    bob.sink.wait(count);
    cpu = cpu_s() - cpu;
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    auto gigabytes = static_cast<double>(size) * count / 1e9;
    WARN(size << " bytes: " << gigabytes / took.count() << " GB/s, " << cpu / gigabytes
              << " CPU s/GB of both ends, " << cpu / count * 1e6 << " CPU us a frame");
  }
  bob.sink.restart();
  constexpr std::uint32_t rounds = 5000;
  auto begun = std::chrono::steady_clock::now();
  auto cpu = cpu_s();
  for (std::uint32_t i = 1; i <= rounds; ++i) {
    ann.plane->send(bob.who.node, header_of(1, frame_kind::activation, i, 64), payload_of(64, 1));
    bob.sink.wait(i);
    bob.plane->send(ann.who.node, header_of(1, frame_kind::gradient, i, 64), payload_of(64, 1));
    ann.sink.wait(i);
  }
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  WARN("round trip of 64 bytes between two threads: "
       << took.count() / rounds * 1e6 << " us, " << (cpu_s() - cpu) / rounds * 1e6 << " CPU us");
  // Neither shall take the other's end for its death.
  ann.plane->halt();
  bob.plane->halt();
}
