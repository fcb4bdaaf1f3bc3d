#include "storage/safetensors.hpp"

#include <catch2/catch.hpp>

#include "storage/hash.hpp"
#include "unit/storage/samples.hpp"

using namespace shoal;
using namespace shoal::storage;
using namespace shoal::test;
using kind = core::scalar_kind;

namespace {

/// A file with this header and so many bytes of data.
std::string file_with(std::string json, std::size_t data_bytes) {
  const std::uint64_t length = json.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + json + std::string(data_bytes, '\0');
}

result<safetensors_header> read(std::string_view file) {
  return read_header(std::as_bytes(std::span(file)));
}

std::string tensor(const char* name, const char* type, const char* shape, const char* offsets) {
  return std::string("\"") + name + R"(":{"dtype":")" + type + R"(","shape":)" + shape +
         R"(,"data_offsets":)" + offsets + "}";
}

struct bad_file {
  const char* what;
  std::string file;
  const char* complaint;
};

}  // namespace

TEST_CASE("a block comes back from its file bit for bit", "[storage]") {
  core::block_state state{7, 0, {}};
  state.tensors.push_back(make_tensor("odd", {3}, kind::u8, 1));  // what follows is not aligned
  state.tensors.push_back(make_tensor("weight", {2, 3, 1}, kind::f32, 1));
  state.tensors.push_back(make_tensor("weight.exp_avg", {2, 3, 1}, kind::f32, 1));
  state.tensors.push_back(make_tensor("scalar", {}, kind::f64, 1));
  state.tensors.push_back(make_tensor("count", {1}, kind::i64, 1));
  state.digest = parameter_digest(state);

  const auto decoded = decode_block(in_memory(file_of(state, {120})));
  REQUIRE(decoded);
  CHECK(decoded->step == step_id{120});
  CHECK(same(decoded->state, state));
  for (auto& t : decoded->state.tensors)
    CHECK(reinterpret_cast<std::uintptr_t>(t.bytes.data) % core::size_of(t.scalar) == 0);
}

TEST_CASE("a block without tensors has a file, too", "[storage]") {
  core::block_state state{0, 0, {}};
  state.digest = parameter_digest(state);
  const auto decoded = decode_block(in_memory(file_of(state, {0})));
  REQUIRE(decoded);
  CHECK(same(decoded->state, state));
}

TEST_CASE("the bytes of a file are fixed by the format", "[storage]") {
  core::block_state state{3, 0, {}};
  state.tensors.push_back(make_tensor("w", {1}, kind::f32, 1));
  const float one = 1;
  std::memcpy(state.tensors[0].bytes.data, &one, sizeof one);
  state.digest = parameter_digest(state);
  const auto file = file_of(state, {9});
  const std::string json =
    R"({"__metadata__":{"format":"pt","shoal.version":"1","shoal.block":"3","shoal.step":"9",)"
    R"("shoal.digest":"f87b05471331b3ae"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  CHECK(file.substr(8, json.size()) == json);
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  CHECK(length == (json.size() + 7) / 8 * 8);
  CHECK(file.substr(8 + json.size(), length - json.size()) ==
        std::string(length - json.size(), ' '));
  CHECK(file.size() == 8 + length + 4);
  CHECK(file.substr(file.size() - 4) == std::string("\0\0\x80\x3f", 4));
}

TEST_CASE("the digest of a block is XXH3-64 over its parameters in order", "[storage]") {
  auto state = make_block(0, 1);
  REQUIRE(state.tensors.size() == 6);
  CHECK(parameter_digest(state) ==
        hash_of(bytes_of(state.tensors[0]) + bytes_of(state.tensors[1])));
  CHECK(parameter_digest({}) == 0x2d06800538d394c2);  // XXH3-64 of nothing, by its specification

  std::swap(state.tensors[0], state.tensors[1]);
  CHECK(parameter_digest(state) != state.digest);
  std::swap(state.tensors[0], state.tensors[1]);
  state.tensors[3].bytes.data[0] ^= std::byte{1};  // bias.exp_avg
  CHECK(parameter_digest(state) == state.digest);
  state.tensors.push_back(make_tensor("h.0.weight.momentum", {2}, kind::f32, 1));
  CHECK(parameter_digest(state) == state.digest);
  state.tensors.push_back(make_tensor("h.0.momentum_gate", {2}, kind::f32, 1));
  CHECK(parameter_digest(state) != state.digest);
}

TEST_CASE("files that break a rule of the format are refused by that rule", "[storage]") {
  const auto a = tensor("a", "F32", "[2]", "[0,8]");
  std::string huge_header(8, '\xff');
  huge_header += "{}";
  std::string many = "[";
  for (int i = 0; i < 10'000; ++i) many += "[";
  const std::vector<bad_file> table{
    {"nothing", "", "too short"},
    {"seven bytes", "1234567", "too short"},
    {"header longer than the file", file_with("{}", 0).replace(0, 1, "\x03"), "claims a header"},
    {"header of 2^64-1 bytes", huge_header, "claims a header"},
    {"no header", file_with("", 4), "does not begin"},
    {"space before the header", file_with(" {}", 0), "does not begin"},
    {"a list", file_with("[]", 0), "does not begin"},
    {"no JSON", file_with("{a}", 0), "is not JSON"},
    {"half a JSON", file_with("{\"a\":{}", 0), "is not JSON"},
    {"two JSONs", file_with("{}{}", 0), "is not JSON"},
    {"zero byte and more after the header", file_with(std::string("{}\0{}", 5), 0), "zero byte"},
    {"tabs after the header", file_with("{}\t\t", 0), "does not end"},
    {"not UTF-8", file_with("{\"\xff\":1}", 0), "is not JSON"},
    {"nested without end", file_with("{\"a\":" + many + "}", 0), "nests deeper"},
    {"duplicate tensor", file_with("{" + a + "," + a + "}", 8), "twice"},
    {"duplicate key in a tensor",
     file_with(R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8),
     "twice"},
    {"duplicate key by escape",
     file_with("{" + a + "," + tensor("\\u0061", "F32", "[2]", "[8,16]") + "}", 16), "twice"},
    {"tensor that is a number", file_with(R"({"a":1})", 0), "not an object"},
    {"unknown key", file_with(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})", 8),
     "unknown key"},
    {"no type", file_with(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8), "\"dtype\""},
    {"unknown type", file_with("{" + tensor("a", "BF16", "[4]", "[0,8]") + "}", 8), "none of"},
    {"type in small letters", file_with("{" + tensor("a", "f32", "[2]", "[0,8]") + "}", 8),
     "none of"},
    {"shape not a list", file_with("{" + tensor("a", "F32", "2", "[0,8]") + "}", 8), "not a list"},
    {"negative size", file_with("{" + tensor("a", "F32", "[-2]", "[0,8]") + "}", 8), "no size"},
    {"size with a point", file_with("{" + tensor("a", "F32", "[2.0]", "[0,8]") + "}", 8),
     "no size"},
    {"size as text", file_with("{" + tensor("a", "F32", "[\"2\"]", "[0,8]") + "}", 8), "no size"},
    {"size above 2^63",
     file_with("{" + tensor("a", "F32", "[9223372036854775808]", "[0,8]") + "}", 8), "no size"},
    {"seven dimensions", file_with("{" + tensor("a", "F32", "[1,1,1,1,1,1,2]", "[0,8]") + "}", 8),
     "at most 6"},
    {"product overflows",
     file_with("{" + tensor("a", "F32", "[4294967296,4294967296]", "[0,0]") + "}", 0), "too large"},
    {"product overflows to the right size",
     file_with("{" + tensor("a", "F32", "[4611686018427387905,4]", "[0,16]") + "}", 16),
     "too large"},
    {"empty tensor", file_with("{" + tensor("a", "F32", "[0]", "[0,0]") + "}", 0), "empty"},
    {"empty tensor beside another",
     file_with("{" + a + "," + tensor("b", "F32", "[2,0]", "[0,0]") + "}", 8), "empty"},
    {"one offset", file_with("{" + tensor("a", "F32", "[2]", "[8]") + "}", 8), "two whole"},
    {"three offsets", file_with("{" + tensor("a", "F32", "[2]", "[0,8,8]") + "}", 8), "at most 2"},
    {"offset NaN", file_with("{" + tensor("a", "F32", "[2]", "[NaN,8]") + "}", 8), "is not JSON"},
    {"offset 1e1", file_with("{" + tensor("a", "F32", "[2]", "[0,8e0]") + "}", 8), "two whole"},
    {"offset null", file_with("{" + tensor("a", "F32", "[2]", "[null,8]") + "}", 8), "two whole"},
    {"ends before it begins", file_with("{" + tensor("a", "F32", "[2]", "[8,0]") + "}", 8),
     "ends before"},
    {"size is not that of the shape", file_with("{" + tensor("a", "F32", "[3]", "[0,8]") + "}", 8),
     "takes 12 bytes"},
    {"hole at the start", file_with("{" + tensor("a", "F32", "[2]", "[4,12]") + "}", 12),
     "begins at 4"},
    {"hole in the middle",
     file_with("{" + a + "," + tensor("b", "F32", "[1]", "[12,16]") + "}", 16), "begins at 12"},
    {"overlap", file_with("{" + a + "," + tensor("b", "F32", "[2]", "[4,12]") + "}", 12),
     "begins at 4"},
    {"alias", file_with("{" + a + "," + tensor("b", "F32", "[2]", "[0,8]") + "}", 8),
     "begins at 0"},
    {"tail after the data", file_with("{" + a + "}", 9), "the file has 9"},
    {"data cut short", file_with("{" + a + "}", 7), "the file has 7"},
    {"metadata not an object", file_with(R"({"__metadata__":"x"})", 0), "not an object"},
    {"metadata not text", file_with(R"({"__metadata__":{"x":1}})", 0), "not text"},
    {"metadata nested", file_with(R"({"__metadata__":{"x":{"y":"z"}}})", 0), "not text"},
    {"empty name", file_with("{" + tensor("", "F32", "[2]", "[0,8]") + "}", 8), "name"},
    {"name with a NUL", file_with("{" + tensor("a\\u0000b", "F32", "[2]", "[0,8]") + "}", 8),
     "name"},
    {"name too long",
     file_with("{" + tensor(std::string(2000, 'a').c_str(), "F32", "[2]", "[0,8]") + "}", 8),
     "name"},
  };
  for (auto& row : table) {
    INFO(row.what);
    const auto header = read(row.file);
    REQUIRE_FALSE(header);
    CHECK(header.error().code == errc::damaged);
    CHECK_THAT(header.error().text, Catch::Contains(row.complaint));
  }
}

TEST_CASE("a sound safetensors file of someone else is foreign, not damaged", "[storage]") {
  const auto file = file_with("{" + tensor("a", "F32", "[2]", "[0,8]") + "}  ", 8);
  const auto header = read(file);
  REQUIRE(header);
  CHECK(header->tensors.size() == 1);
  const auto decoded = decode_block(in_memory(file));
  REQUIRE_FALSE(decoded);
  CHECK(decoded.error().code == errc::foreign);

  auto newer = file_of(make_block(0, 1), {1});
  newer.replace(newer.find(R"("shoal.version":"1")"), 19, R"("shoal.version":"2")");
  CHECK(decode_block(in_memory(newer)).error().code == errc::foreign);
}

TEST_CASE("a file cut anywhere, or with a parameter's bit flipped, is refused", "[storage]") {
  const auto state = make_block(2, 5);
  const auto file = file_of(state, {40});
  for (std::size_t size = 0; size < file.size(); ++size)
    REQUIRE_FALSE(decode_block(in_memory(std::string_view(file).substr(0, size))));
  REQUIRE_FALSE(decode_block(in_memory(file + '\0')));

  const auto parameters = state.tensors[0].bytes.size + state.tensors[1].bytes.size;
  const auto data = encode_header(state, {40})->size();
  for (std::size_t bit = data * 8; bit < (data + parameters) * 8; ++bit) {
    auto flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const auto decoded = decode_block(in_memory(flipped));
    REQUIRE_FALSE(decoded);
    REQUIRE(decoded.error().code == errc::damaged);
  }
}

TEST_CASE("a state that no reader would take is not written", "[storage]") {
  const auto sound = make_block(0, 1);
  auto code_of = [](const core::block_state& state) {
    const auto header = encode_header(state, {1});
    return header ? errc{} : header.error().code;
  };
  auto with = [&](core::state_tensor extra) {
    auto state = sound;
    state.tensors.push_back(std::move(extra));
    return state;
  };
  CHECK(encode_header(sound, {1}));
  CHECK(code_of(with(make_tensor("h.0.bias", {1}, kind::f32, 1))) == errc::internal);
  CHECK(code_of(with(make_tensor("__metadata__", {1}, kind::f32, 1))) == errc::internal);
  CHECK(code_of(with(make_tensor("", {1}, kind::f32, 1))) == errc::internal);
  CHECK(code_of(with(make_tensor("n\xc3\xa4me", {1}, kind::f32, 1))) == errc::internal);
  CHECK(code_of(with(make_tensor("empty", {2, 0}, kind::f32, 1))) == errc::internal);
  CHECK(code_of(with(make_tensor("deep", {1, 1, 1, 1, 1, 1, 1}, kind::f32, 1))) == errc::internal);
  auto wrong = make_tensor("wrong", {2}, kind::f32, 1);
  wrong.shape = {3};
  CHECK(code_of(with(wrong)) == errc::internal);
}
