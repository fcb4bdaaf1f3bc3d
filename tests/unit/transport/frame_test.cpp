#include "transport/frame.hpp"

#include <catch2/catch.hpp>

#include "transport/hello.hpp"
#include "transport/wire.hpp"

using namespace shoal;
using namespace shoal::transport;
using core::frame_kind;
using core::scalar_kind;

namespace {

constexpr std::uint64_t bytes_max = 1 << 20;

core::frame_header sample() {
  return {.view = {3},
          .step = {1000},
          .kind = frame_kind::gradient,
          .block = 12,
          .micro_batch = 77,
          .part = 2,
          .scalar = scalar_kind::f32,
          .shape = {4, 128, 192},
          .bytes = 4 * 128 * 192 * 4};
}

void reseal(frame_header_bytes& bytes) { put(bytes, 104, hash_of(std::span(bytes).first(104))); }

error decode_error(const frame_header_bytes& bytes) {
  auto decoded = decode_frame(bytes, bytes_max);
  REQUIRE_FALSE(decoded);
  return decoded.error();
}

}  // namespace

TEST_CASE("a header comes back as it went", "[transport][frame]") {
  for (auto kind :
       {frame_kind::activation, frame_kind::gradient, frame_kind::partial, frame_kind::total,
        frame_kind::tied, frame_kind::validation, frame_kind::state}) {
    for (auto scalar : {scalar_kind::f32, scalar_kind::f64, scalar_kind::i64, scalar_kind::u8}) {
      for (std::vector<std::int64_t> shape :
           {std::vector<std::int64_t>{}, {7}, {2, 3}, {1, 2, 3, 4, 5, 6}, {0}, {5, 0}}) {
        auto header = sample();
        header.kind = kind;
        header.scalar = scalar;
        header.shape = shape;
        header.bytes = core::size_of(scalar);
        for (auto size : shape) header.bytes *= static_cast<std::uint64_t>(size);
        auto back = decode_frame(encode(header), bytes_max);
        REQUIRE(back);
        CHECK(back->view == header.view);
        CHECK(back->step == header.step);
        CHECK(back->kind == kind);
        CHECK(back->block == header.block);
        CHECK(back->micro_batch == header.micro_batch);
        CHECK(back->part == header.part);
        CHECK(back->scalar == scalar);
        CHECK(back->shape == shape);
        CHECK(back->bytes == header.bytes);
      }
    }
  }
}

TEST_CASE("the layout of the header is the one that is drawn", "[transport][frame]") {
  auto bytes = encode(sample());
  CHECK(std::string(reinterpret_cast<const char*>(bytes.data()), 4) == "SHLF");
  CHECK(get<std::uint16_t>(bytes, 4) == core::protocol_version);
  CHECK(get<std::uint8_t>(bytes, 6) == 1);
  CHECK(get<std::uint64_t>(bytes, 8) == 3);
  CHECK(get<std::uint64_t>(bytes, 16) == 1000);
  CHECK(get<std::uint32_t>(bytes, 24) == 12);
  CHECK(get<std::uint32_t>(bytes, 28) == 77);
  CHECK(get<std::uint32_t>(bytes, 32) == 2);
  CHECK(get<std::uint32_t>(bytes, 36) == 3);
  CHECK(get<std::int64_t>(bytes, 48) == 128);
  CHECK(get<std::uint64_t>(bytes, 88) == 393216);
}

TEST_CASE("a bad header is refused with what was expected", "[transport][frame]") {
  struct row {
    std::string what;
    std::function<void(frame_header_bytes&)> spoil;
    errc code;
    std::string text;
  };
  auto rows = std::vector<row>{
    {"magic", [](auto& b) { put(b, 0, magic("GET ")); }, errc::protocol,
     "begins with \"GET \", expected \"SHLF\""},
    {"version", [](auto& b) { put(b, 4, std::uint16_t{7}); }, errc::protocol,
     "version 7, expected " + std::to_string(core::protocol_version)},
    {"kind", [](auto& b) { put(b, 6, std::uint8_t{8}); }, errc::protocol,
     "kind 8 is unknown, expected 0 to 7"},
    {"scalar", [](auto& b) { put(b, 7, std::uint8_t{4}); }, errc::protocol,
     "scalar 4 is unknown, expected 0 to 3"},
    {"dimensions", [](auto& b) { put(b, 36, std::uint32_t{7}); }, errc::protocol,
     "7 dimensions, expected at most 6"},
    {"negative", [](auto& b) { put(b, 48, std::int64_t{-1}); }, errc::protocol,
     "a dimension is -1"},
    {"unused", [](auto& b) { put(b, 80, std::int64_t{1}); }, errc::protocol,
     "unused dimension 5 is 1, expected 0"},
    {"overflow", [](auto& b) { put(b, 48, std::int64_t{1} << 62); }, errc::protocol,
     "does not fit into 64 bits"},
    {"bytes", [](auto& b) { put(b, 88, std::uint64_t{5}); }, errc::protocol,
     "payload of 5 bytes, expected 393216"},
    {"too long",
     [](auto& b) { put(b, 40, std::int64_t{400}), put(b, 88, std::uint64_t{39321600}); },
     errc::protocol, "39321600 bytes, expected at most 1048576"},
    {"request with payload", [](auto& b) { put(b, 6, std::uint8_t{6}); }, errc::protocol,
     "payload of 393216 bytes, expected 0"},
    {"reserved", [](auto& b) { put(b, 96, std::uint64_t{1}); }, errc::protocol, "reserved"},
  };
  for (auto& r : rows) {
    CAPTURE(r.what);
    auto bytes = encode(sample());
    r.spoil(bytes);
    reseal(bytes);
    auto why = decode_error(bytes);
    CHECK(why.code == r.code);
    CHECK_THAT(why.text, Catch::Contains(r.text));
  }
  auto bytes = encode(sample());
  put(bytes, 104, std::uint64_t{0});
  CHECK(decode_error(bytes).code == errc::damaged);
}

TEST_CASE("any flipped bit of a header, hello, answer or farewell is found", "[transport][frame]") {
  auto flip = [](auto bytes, std::size_t bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    return bytes;
  };
  auto header = encode(sample());
  for (std::size_t bit = 0; bit < 8 * header.size(); ++bit)
    CHECK_FALSE(decode_frame(flip(header, bit), bytes_max));
  auto hello = encode(
    greeting{.job = 1, .from = {{1}, {1}}, .to = {{2}, {1}}, .direction = direction_class::bulk});
  for (std::size_t bit = 0; bit < 8 * hello.size(); ++bit)
    CHECK_FALSE(decode_hello(flip(hello, bit)));
  auto answer = encode_acceptance();
  for (std::size_t bit = 0; bit < 8 * answer.size(); ++bit)
    CHECK_FALSE(decode_answer(flip(answer, bit)));
  for (std::size_t bit = 0; bit < 8 * header.size(); ++bit)
    CHECK_FALSE(is_farewell(flip(farewell(), bit)));
  CHECK(is_farewell(farewell()));
  CHECK_FALSE(decode_frame(farewell(), bytes_max));
}

TEST_CASE("a hello comes back as it went", "[transport][frame]") {
  greeting hello{.job = 0xfeedface12345678,
                 .from = {{7}, {3}},
                 .to = {{1000}, {2}},
                 .direction = direction_class::bulk};
  auto back = decode_hello(encode(hello));
  REQUIRE(back);
  CHECK(*back == hello);
  hello.from.node = {};
  CHECK_FALSE(decode_hello(encode(hello)));
}

TEST_CASE("an answer brings its reason, cut when too long and without control characters",
          "[transport][frame]") {
  CHECK(decode_answer(encode_acceptance()));
  auto back = decode_answer(encode_refusal({errc::foreign, "another job\n\x1b[31m"}));
  REQUIRE_FALSE(back);
  CHECK(back.error().code == errc::foreign);
  CHECK(back.error().text == "another job  [31m");
  back = decode_answer(encode_refusal({errc::internal, std::string(10000, 'x')}));
  REQUIRE_FALSE(back);
  CHECK(back.error().code == errc::internal);
  CHECK(back.error().text == std::string(answer_reason_size_max, 'x'));
}

TEST_CASE("each kind has its class", "[transport][frame]") {
  CHECK(class_of(frame_kind::activation) == direction_class::pipeline);
  CHECK(class_of(frame_kind::gradient) == direction_class::pipeline);
  CHECK(class_of(frame_kind::validation) == direction_class::pipeline);
  for (auto kind : {frame_kind::partial, frame_kind::total, frame_kind::tied,
                    frame_kind::state_request, frame_kind::state})
    CHECK(class_of(kind) == direction_class::bulk);
}
