#include "base/units.hpp"

#include <catch2/catch.hpp>

using namespace shoal;
using namespace std::chrono_literals;

TEST_CASE("durations are read with their unit", "[base][units]") {
  CHECK(parse_duration("250us").value() == 250us);
  CHECK(parse_duration("200ms").value() == 200ms);
  CHECK(parse_duration("1.5s").value() == 1500ms);
  CHECK(parse_duration("0.1s").value() == 100ms);
  CHECK(parse_duration("10min").value() == 10min);
  CHECK(parse_duration("2h").value() == 2h);
  CHECK(parse_duration("7 ns").value() == 7ns);
  CHECK(parse_duration("0s").value() == 0ns);
  CHECK(parse_duration("9223372036854775807ns").value().count() == INT64_MAX);
}

TEST_CASE("what is no duration is refused with advice", "[base][units]") {
  for (auto text :
       {"", "5", "ms", "-1s", "1.2.3s", "1.s", ".5s", "5 parsecs", "1e3s", "9223372036854775808ns",
        "99999999999999999999h", "300000000.5h", "5s ", "nan s", "1s2"}) {
    auto read = parse_duration(text);
    CAPTURE(text);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == errc::config);
    CHECK_THAT(read.error().text, Catch::StartsWith("\"" + std::string(text) + "\" "));
  }
  CHECK_THAT(parse_duration("5").error().text, Catch::Contains("has no unit"));
}

TEST_CASE("sizes are powers of two, or of ten when they say so", "[base][units]") {
  CHECK(parse_bytes("512").value().value == 512);
  CHECK(parse_bytes("512B").value().value == 512);
  CHECK(parse_bytes("64KiB").value().value == 65536);
  CHECK(parse_bytes("2GiB").value().value == 2ull << 30);
  CHECK(parse_bytes("2GB").value().value == 2'000'000'000);
  CHECK(parse_bytes("1.5 MiB").value().value == 3 << 19);
  CHECK(parse_bytes("18446744073709551615").value().value == UINT64_MAX);
  for (auto text : {"", "KiB", "-5", "5kib", "18446744073709551616", "16777216TiB", "16777216.0TiB",
                    "1..5GB"}) {
    CAPTURE(text);
    REQUIRE_FALSE(parse_bytes(text));
    CHECK(parse_bytes(text).error().code == errc::config);
  }
}

TEST_CASE("rates are bits or bytes a second", "[base][units]") {
  CHECK(parse_rate("100Mbit/s").value().bytes_per_s == 12.5e6);
  CHECK(parse_rate("1Gbit/s").value().bytes_per_s == 125e6);
  CHECK(parse_rate("10MB/s").value().bytes_per_s == 10e6);
  CHECK(parse_rate("1.5 MiB/s").value().bytes_per_s == 1.5 * 1048576);
  CHECK(parse_rate("unlimited").value().bytes_per_s == 0);
  for (auto text :
       {"", "100", "100Mbit", "100Mb/s", "/s", "0MB/s", "-1MB/s", "infinite", "100Mbit/h"}) {
    CAPTURE(text);
    REQUIRE_FALSE(parse_rate(text));
  }
  CHECK_THAT(parse_rate("0MB/s").error().text, Catch::Contains("unlimited"));
}

TEST_CASE("durations print with three digits and a fitting unit", "[base][units]") {
  CHECK(text_of(1250ms) == "1.25 s");
  CHECK(text_of(312ms) == "312 ms");
  CHECK(text_of(0ns) == "0 s");
  CHECK(text_of(7ns) == "7 ns");
  CHECK(text_of(1500ns) == "1.50 us");
  CHECK(text_of(std::chrono::nanoseconds(999'499'999)) == "999 ms");
  CHECK(text_of(std::chrono::nanoseconds(999'500'000)) == "1.00 s");
  CHECK(text_of(std::chrono::nanoseconds(9'996'000'000)) == "10.0 s");
  CHECK(text_of(90s) == "90.0 s");
  CHECK(text_of(5min) == "5.00 min");
  CHECK(text_of(3h) == "3.00 h");
  CHECK(text_of(-20ms) == "-20.0 ms");
  CHECK(text_of(std::chrono::nanoseconds::min()).front() == '-');
}

TEST_CASE("sizes print with three digits and a fitting unit", "[base][units]") {
  CHECK(text_of(byte_count{3ull << 29}) == "1.50 GiB");
  CHECK(text_of(byte_count{0}) == "0 B");
  CHECK(text_of(byte_count{1023}) == "1023 B");
  CHECK(text_of(byte_count{1024}) == "1.00 KiB");
  CHECK(text_of(byte_count{1048570}) == "1.00 MiB");
  CHECK(text_of(byte_count{300ull << 20}) == "300 MiB");
  CHECK(text_of(byte_count{5000ull << 40}) == "5000 TiB");
}
