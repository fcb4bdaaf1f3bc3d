#include "transport/link_probe.hpp"

#include <catch2/catch.hpp>

using namespace shoal;
using namespace shoal::transport;

TEST_CASE("every size has a time, and large frames take longer", "[transport][probe]") {
  auto table = probe_loopback({}, {.sizes = {4, 1 << 20, 16 << 20}, .frames_max = 5});
  INFO((table ? "" : table.error().text));
  REQUIRE(table);
  REQUIRE(table->size() == 3);
  for (auto& row : *table) {
    CHECK(row.seconds.mean > 0);
    CHECK(row.seconds.used + row.seconds.rejected <= 5);
  }
  CHECK(table->at(2).bytes == 16 << 20);
  CHECK(table->at(2).seconds.mean > table->at(0).seconds.mean);
}

TEST_CASE("the emulated rate and delay are what is measured", "[transport][probe]") {
  core::emulate_options slow;
  slow.rate = byte_rate{10e6};
  slow.delay = std::chrono::milliseconds(20);
  auto table = probe_loopback(slow, {.sizes = {4, 1'000'000}, .warm_up = 1, .frames_max = 3});
  REQUIRE(table);
  // Never faster than emulated: 20 ms, and 20 ms + 1 MB at 10 MB/s.
  CHECK(table->at(0).seconds.mean >= 0.020);
  CHECK(table->at(1).seconds.mean >= 0.119);
}
