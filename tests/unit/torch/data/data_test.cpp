#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include <sys/stat.h>
#include <unistd.h>

#include "torch/data/token_dataset.hpp"
#include "unit/torch/helpers.hpp"

using namespace shoal;
using namespace shoal::engine;
namespace fs = std::filesystem;

namespace {

struct folder {
  folder() {
    auto name = (fs::temp_directory_path() / "shoal-data-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~folder() { fs::remove_all(path); }
  std::string put(const std::string& name, const std::string& bytes) const {
    std::ofstream(path / name, std::ios::binary) << bytes;
    return (path / name).string();
  }
  fs::path path;
};

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
std::string counting(std::size_t count, T from = 0) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), from);
  return bytes_of(values);
}

std::string llmc(std::int32_t magic, std::int32_t version, std::int32_t count,
                 const std::string& tokens) {
  std::vector<std::int32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  return bytes_of(header) + tokens;
}

core::job_options job_on(const std::string& path, const std::string& kind) {
  core::job_options job;
  job.data.path = path;
  job.data.kind = kind;
  job.data.validation_fraction = 0;
  job.model.seq_len = 4;
  job.model.vocab_size = 1000;
  return job;
}

std::unique_ptr<dataset> open(const core::job_options& job) {
  auto opened = open_data({}, job);
  if (!opened) FAIL(opened.error().text);
  return std::move(opened).value();
}

std::vector<std::int64_t> values(const at::Tensor& t) {
  return {t.data_ptr<std::int64_t>(), t.data_ptr<std::int64_t>() + t.numel()};
}

using tokens = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("samples are windows whose inputs do not overlap", "[torch][data]") {
  folder f;
  auto data = open(job_on(f.put("t.txt", counting<std::uint8_t>(13)), "text"));
  REQUIRE(data->size() == 3);
  CHECK(data->validation_size() == 0);
  auto batch = data->get(std::vector<std::uint64_t>{2, 0});
  CHECK(batch.inputs.sizes() == at::IntArrayRef({2, 4}));
  CHECK(values(batch.inputs) == tokens{8, 9, 10, 11, 0, 1, 2, 3});
  CHECK(values(batch.targets) == tokens{9, 10, 11, 12, 1, 2, 3, 4});
}

TEST_CASE("every kind of file gives the same tokens", "[torch][data]") {
  folder f;
  auto path = f.put("t.bin", GENERATE(counting<std::uint16_t>(13, 300),
                                      llmc(20240520, 1, 13, counting<std::uint16_t>(13, 300)),
                                      llmc(20240801, 7, 13, counting<std::uint32_t>(13, 300))));
  auto data = open(job_on(path, fs::file_size(path) < 1000 ? "nanogpt" : "llmc"));
  REQUIRE(data->size() == 3);
  CHECK(values(data->get(std::vector<std::uint64_t>{1}).targets) == tokens{305, 306, 307, 308});
}

TEST_CASE("the last part of the tokens is the validation split", "[torch][data]") {
  folder f;
  auto job = job_on(f.put("t.txt", counting<std::uint8_t>(40)), "text");
  job.data.validation_fraction = 0.25;
  auto data = open(job);
  CHECK(data->size() == 7);  // tokens 0..29
  REQUIRE(data->validation_size() == 2);
  CHECK(values(data->get_validation(std::vector<std::uint64_t>{1}).inputs) ==
        tokens{34, 35, 36, 37});
  job.data.validation_fraction = 0.05;  // two tokens: no sample
  CHECK(open(job)->validation_size() == 0);
}

TEST_CASE("a text folder is its files in order of name, without indexes, links and folders",
          "[torch][data]") {
  folder f;
  f.put("b", "efgh");
  f.put("a", "abcd");
  f.put("a.dat", "XXXX");
  f.put(".hidden", "XXXX");
  fs::create_symlink("a", f.path / "a.u8");
  fs::create_directory(f.path / "sub");
  f.put("sub/c", "XXXX");
  f.put("c", "i");
  auto data = open(job_on(f.path.string(), "text"));
  REQUIRE(data->size() == 2);
  auto batch = data->get(std::vector<std::uint64_t>{0, 1});
  CHECK(values(batch.inputs) == tokens{'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'});
  CHECK(values(batch.targets).back() == 'i');
}

TEST_CASE("a folder's train and val files are its split", "[torch][data]") {
  folder f;
  auto [train, val] = GENERATE(table<std::string, std::string>(
    {{"train.bin", "val.bin"}, {"x_train_000001.bin", "x_val_000000.bin"}}));
  f.put(train, counting<std::uint16_t>(9, 100));
  f.put(val, counting<std::uint16_t>(5, 200));
  f.put("eval_retrained.txt", "XXXX");
  auto job = job_on(f.path.string(), "nanogpt");
  job.data.validation_fraction = 0.5;
  auto data = open(job);
  CHECK(data->size() == 2);
  REQUIRE(data->validation_size() == 1);
  CHECK(values(data->get(std::vector<std::uint64_t>{0}).inputs)[0] == 100);
  CHECK(values(data->get_validation(std::vector<std::uint64_t>{0}).inputs)[0] == 200);
}

TEST_CASE("shards follow one another", "[torch][data]") {
  folder f;
  f.put("s_1.bin", llmc(20240520, 1, 6, counting<std::uint16_t>(6, 106)));
  f.put("s_0.bin", llmc(20240520, 1, 6, counting<std::uint16_t>(6, 100)));
  auto data = open(job_on(f.path.string(), "llmc"));
  REQUIRE(data->size() == 2);
  CHECK(values(data->get(std::vector<std::uint64_t>{1}).inputs) == tokens{104, 105, 106, 107});
}

TEST_CASE("bad data are one clear error", "[torch][data]") {
  folder f;
  auto tokens16 = counting<std::uint16_t>(20);
  std::string kind = "text", path, text;
  errc code = errc::data;
  SECTION("no path") {
    code = errc::config;
    text = "data.path is not set";
  }
  SECTION("missing") {
    path = (f.path / "none").string();
    text = "does not exist; correct data.path";
  }
  SECTION("missing folder") {
    path = (f.path / "none/x.bin").string();
    kind = "llmc";
    text = "does not exist";
  }
  SECTION("empty") {
    path = f.put("e", "");
    text = "is empty";
  }
  SECTION("an empty folder") {
    path = f.path.string();
    text = "holds no text file";
  }
  SECTION("a folder without bins") {
    f.put("a.txt", "abc");
    path = f.path.string();
    kind = "llmc";
    text = "holds no *.bin";
  }
  SECTION("a device") {
    path = "/dev/null";
    text = "not a regular file";
  }
  SECTION("short") {
    path = f.put("s", "abcd");
    text = "has 4 tokens to train on, and one sample of model.seq_len = 4 needs 5";
  }
  SECTION("odd bytes") {
    path = f.put("o.bin", "abc");
    kind = "nanogpt";
    text = "odd number of bytes (3)";
  }
  SECTION("beyond the vocabulary") {
    path = f.put("v.bin", counting<std::uint16_t>(10, 995));
    kind = "nanogpt";
    text = "v.bin\": token 1000 at byte 10 is beyond model.vocab_size = 1000";
  }
  SECTION("beyond the vocabulary behind a header") {
    path = f.put("v.bin", llmc(20240801, 7, 10, counting<std::uint32_t>(10, 995)));
    kind = "llmc";
    text = "token 1000 at byte 1044";
  }
  SECTION("shards of two widths") {
    f.put("a.bin", llmc(20240520, 1, 20, tokens16));
    f.put("b.bin", llmc(20240801, 7, 1, counting<std::uint32_t>(1)));
    path = f.path.string();
    kind = "llmc";
    text = "its tokens have 4 bytes";
  }
  SECTION("without permission") {
    if (::geteuid() == 0) return;  // root may read everything
    path = f.put("p", "abcdefgh");
    ::chmod(path.c_str(), 0);
    code = errc::no_permission;
    text = "make it readable";
  }
  auto opened = open_data({}, job_on(path, kind));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == code);
  CHECK_THAT(opened.error().text, Catch::Contains(text));
}

TEST_CASE("an llm.c file that does not say what it holds is one clear error", "[torch][data]") {
  folder f;
  auto tokens16 = counting<std::uint16_t>(20);
  std::string kind = "text", path, text;
  errc code = errc::data;
  SECTION("no header") {
    path = f.put("h.bin", tokens16);
    kind = "llmc";
    text = "has 40 bytes, an llm.c header has 1024";
  }
  SECTION("foreign magic") {
    path = f.put("h.bin", llmc(1, 1, 20, tokens16));
    kind = "llmc";
    text = "begins with 1, not with an llm.c magic";
  }
  SECTION("foreign version") {
    path = f.put("h.bin", llmc(20240520, 2, 20, tokens16));
    kind = "llmc";
    text = "header has version 2, version 1";
  }
  SECTION("cut off") {
    path = f.put("h.bin", llmc(20240520, 1, 21, tokens16));
    kind = "llmc";
    text = "promises 21 tokens, 1066 bytes in all, and it has 1064";
  }
  SECTION("too long") {
    path = f.put("h.bin", llmc(20240520, 1, 19, tokens16));
    kind = "llmc";
    text = "promises 19 tokens";
  }
  SECTION("negative count") {
    path = f.put("h.bin", llmc(20240520, 1, -1, ""));
    kind = "llmc";
    text = "promises -1 tokens";
  }
  auto opened = open_data({}, job_on(path, kind));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == code);
  CHECK_THAT(opened.error().text, Catch::Contains(text));
}

TEST_CASE("permission is told apart from absence", "[torch][data]") {
  CHECK(file_error(EACCES, "x").code == errc::no_permission);
  CHECK(file_error(ENOENT, "x").code == errc::data);
  CHECK(file_error(EIO, "x").code == errc::io);
}

TEST_CASE("a token beyond the vocabulary is found when it is used", "[torch][data]") {
  folder f;
  auto file = mapped_file::open(f.put("v.bin", counting<std::uint16_t>(10, 995)));
  REQUIRE(file);
  token_stream stream(2);
  stream.append(std::shared_ptr<const mapped_file>(std::move(file).value()), 0);
  std::vector<std::int64_t> out(5);
  stream.read(0, out, 1000);
  CHECK(out.back() == 999);
  CHECK_THROWS_WITH(stream.read(1, out, 1000), Catch::Contains("token 1000 at byte 10"));
}

TEST_CASE("the fingerprint is that of contents, not of names", "[torch][data]") {
  folder f, g;
  auto whole = f.put("whole", "abcdefghijklm");
  f.put("other", "abcdefghijklM");
  fs::create_directory(g.path / "in");
  g.put("in/1", "abcde");
  g.put("in/2", "fghijklm");
  auto job = job_on(whole, "text");
  auto print = open(job)->fingerprint();
  job.data.path = (g.path / "in").string();
  CHECK(open(job)->fingerprint() == print);
  job.data.validation_fraction = 0.4;
  CHECK(open(job)->fingerprint() != print);
  CHECK(open(job_on((f.path / "other").string(), "text"))->fingerprint() != print);
  auto longer = job_on(whole, "text");
  longer.model.seq_len = 5;
  CHECK(open(longer)->fingerprint() != print);
}

TEST_CASE("large data are sampled for the fingerprint, from the first byte to the last",
          "[torch][data]") {
  folder f;
  auto path = f.put("large", "abc");
  constexpr std::uint64_t size = (std::uint64_t{1} << 30) + 12345;
  fs::resize_file(path, size);  // sparse: no bytes on disk
  auto print_of = [&] {
    token_stream stream(1);
    stream.append(std::shared_ptr<const mapped_file>(mapped_file::open(path).value()), 0);
    return stream.fingerprint(0);
  };
  auto poke = [&](std::uint64_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.put('x');
  };
  auto before = print_of();
  CHECK(print_of() == before);
  poke(0);
  auto first = print_of();
  CHECK(first != before);
  poke(size - 1);
  CHECK(print_of() != first);
}
