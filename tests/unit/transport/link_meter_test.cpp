#include "transport/link_meter.hpp"

#include <catch2/catch.hpp>

using namespace shoal;
using namespace shoal::transport;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t mega = 1'000'000;

/// A meter under a clock that is set by hand.
struct meter_lab {
  link_meter meter;
  core::time_point now{100s};

  void frame(std::uint64_t bytes, std::chrono::nanoseconds time, std::uint64_t here = 0,
             direction_class on = direction_class::pipeline) {
    meter.begin(on, now, bytes, here);
    for (int piece = 0; piece < 4; ++piece) meter.read(bytes / 4);
    now += time;
    meter.end(on, now);
    now += 3s;  // idle: no part of it
  }
  double rate() const { return static_cast<double>(meter.bytes_per_s()); }
};

}  // namespace

TEST_CASE("a link's rate is the bytes of large frames over the time they took to come",
          "[transport][link_meter]") {
  meter_lab l;
  for (int i = 0; i < 3; ++i) l.frame(mega, 80ms);
  CHECK(l.meter.bytes_per_s() == 0);  // too few
  l.frame(2 * mega, 160ms);
  CHECK(l.rate() == Approx(12.5e6));
}

TEST_CASE("small frames say nothing", "[transport][link_meter]") {
  meter_lab l;
  for (int i = 0; i < 100; ++i) l.frame(link_meter::frame_bytes_min - 1, 1ms);
  CHECK(l.meter.bytes_per_s() == 0);
}

TEST_CASE("bytes that the kernel held before do not count, and too many of them spoil the sample",
          "[transport][link_meter]") {
  meter_lab l;
  for (int i = 0; i < 4; ++i) l.frame(mega, 60ms, mega / 4);
  CHECK(l.rate() == Approx(12.5e6));
  for (int i = 0; i < 100; ++i) l.frame(mega, 1us, mega - 1000);
  for (int i = 0; i < 100; ++i) l.frame(mega, 1us, 5 * mega);  // of frames after it, too
  CHECK(l.rate() == Approx(12.5e6));
}

TEST_CASE("frames on both connections at once share the link", "[transport][link_meter]") {
  meter_lab l;
  for (int i = 0; i < 4; ++i) {
    auto& m = l.meter;
    m.begin(direction_class::bulk, l.now, 4 * mega, 0);
    m.read(2 * mega);
    m.begin(direction_class::pipeline, l.now + 160ms, mega, 0);
    m.read(mega);  // of both, half each
    m.read(mega);
    m.end(direction_class::pipeline, l.now + 320ms);
    m.read(mega);
    m.end(direction_class::bulk, l.now + 400ms);
    l.now += 5s;
  }
  CHECK(l.rate() == Approx(12.5e6));
}

TEST_CASE("a stalled sender, a late end and a burst are outliers", "[transport][link_meter]") {
  meter_lab l;
  for (int i = 0; i < 28; ++i) l.frame(mega, 80ms + std::chrono::microseconds(100 * (i % 5)));
  l.frame(mega, 3s);
  l.frame(mega, 400ms);
  l.frame(mega, 1ms);
  CHECK(l.rate() == Approx(12.5e6).epsilon(0.01));
}

TEST_CASE("a link that changes is followed once its samples have passed",
          "[transport][link_meter]") {
  meter_lab l;
  for (int i = 0; i < 50; ++i) l.frame(mega, 10ms);
  CHECK(l.rate() == Approx(1e8));
  for (std::size_t i = 0; i < link_meter::samples_max; ++i) l.frame(mega, 100ms);
  CHECK(l.rate() == Approx(1e7));
}

TEST_CASE("a frame that is not read to its end is no sample, nor an end without beginning",
          "[transport][link_meter]") {
  meter_lab l;
  for (int i = 0; i < 10; ++i) {
    l.meter.begin(direction_class::bulk, l.now, mega, 0);
    l.meter.read(mega / 2);
    l.meter.drop(direction_class::bulk);
    l.meter.end(direction_class::bulk, l.now + 1s);
  }
  CHECK(l.meter.bytes_per_s() == 0);
  for (int i = 0; i < 4; ++i) l.frame(mega, 0ns);  // a clock that stood still
  CHECK(l.meter.bytes_per_s() == 0);
  for (int i = 0; i < 4; ++i) l.frame(mega, 80ms);
  CHECK(l.rate() == Approx(12.5e6));
}
