// What a user gets for a job that cannot be: one sentence with what, where and what to do, the exit
// code of its kind, and nothing that goes on.

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "net/harness.hpp"

using namespace shoal::test;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Runs the job file `text`; it must fail.
void refused(const std::string& text, const std::vector<std::string>& told) {
  scratch_folder folder;
  write(folder.path / "job.toml", text);
  require_end(run({"run", (folder.path / "job.toml").string(), "--set",
                   "job.folder=" + (folder.path / "run").string()},
                  30s),
              3, told);
  require_tidy(folder.path);
}

/// Runs configs/tiny.toml with `sets`; it must fail before it starts a node.
void refused_with(int code, const std::vector<std::string>& sets,
                  const std::vector<std::string>& told) {
  scratch_folder folder;
  auto end = run(tiny("run", folder.path / "run", sets), 30s);
  require_end(end, code, told);
  REQUIRE(end.out.find("joins") == std::string::npos);
  require_tidy(folder.path);
}

template <class Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

}  // namespace

TEST_CASE("a job file is refused with the line and the nearest name", "[net][input]") {
  SECTION("an unknown key") {
    refused("[training]\nstepz = 5\n",
            {"job.toml:2", "training.stepz", "nearest", "training.steps"});
  }
  SECTION("an unknown table") {
    refused("[trainig]\nsteps = 5\n", {"job.toml:1", "trainig", "training"});
  }
  SECTION("a wrong type") {
    refused("[training]\nsteps = \"five\"\n",
            {"job.toml:2", "training.steps", "expected an integer", "\"five\""});
  }
  SECTION("out of range") {
    refused("[training]\n\nsteps = 0\n", {"job.toml:3", "training.steps", "from 1 to", "got 0"});
  }
  SECTION("not TOML at all") { refused("[training\nsteps = 5\n", {"job.toml:1"}); }
  SECTION("a word that is not one of the choices") {
    refused("[parallelism]\nschedule = \"1f1c\"\n", {"job.toml:2", "parallelism.schedule", "1f1b"});
  }
  SECTION("several errors are told at once") {
    refused("[training]\nstepz = 5\nmicro_batches = -1\n[optimizer]\nlr = \"fast\"\n",
            {"job.toml:2", "training.steps", "job.toml:3", "training.micro_batches", "job.toml:5",
             "optimizer.lr"});
  }
}

TEST_CASE("a job file that does not exist is named", "[net][input]") {
  scratch_folder folder;
  auto path = (folder.path / "nowhere.toml").string();
  auto end = run({"run", path}, 30s);
  INFO(end.err);
  CHECK((end.exit_code == 2 || end.exit_code == 3));
  CHECK(end.err.find(path) != std::string::npos);
}

TEST_CASE("an override is checked like the file", "[net][input]") {
  SECTION("unknown") {
    refused_with(3, {"training.stepz=5"},
                 {"command line", "training.stepz", "nearest", "training.steps"});
  }
  SECTION("wrong type") {
    refused_with(3, {"training.steps=five"}, {"training.steps", "expected an integer"});
  }
  SECTION("not KEY=VALUE") { refused_with(3, {"training.steps"}, {"training.steps", "KEY=VALUE"}); }
}

TEST_CASE("a command line that means nothing is a usage error", "[net][input]") {
  CHECK(run({"fly"}, 30s).exit_code == 2);
  CHECK(run({}, 30s).exit_code == 2);
  CHECK(run({"run"}, 30s).exit_code == 2);
  CHECK(run({"node", "--join", "nowhere"}, 30s).exit_code == 2);
}

TEST_CASE("sizes that do not divide are told with both numbers", "[net][input]") {
  SECTION("width by heads") {
    refused_with(3, {"model.heads=3"}, {"model.heads", "model.dim (32)", "not a multiple"});
  }
  SECTION("heads by heads of keys") {
    refused_with(3, {"model.kind=llama", "model.heads=4", "model.kv_heads=3"},
                 {"model.kv_heads", "not a multiple"});
  }
  SECTION("a leaf of the sum larger than the batch") {
    refused_with(3, {"training.micro_batches=4", "training.reduction_leaf=8"},
                 {"training.reduction_leaf", "training.micro_batches (4)"});
  }
  SECTION("more stages than blocks") {
    refused_with(3, {"parallelism.depth=9"}, {"parallelism.depth", "6 blocks"});
  }
  SECTION("chunks where there is one a stage, or too few to interleave") {
    refused_with(3, {"parallelism.chunks=2"}, {"parallelism.chunks", "interleaved-1f1b"});
    refused_with(3, {"parallelism.chunks=1", "parallelism.schedule=interleaved-1f1b"},
                 {"parallelism.chunks", "2 or more"});
  }
  SECTION("Varuna's order without recompute") {
    refused_with(3, {"parallelism.schedule=varuna"},
                 {"parallelism.schedule", "training.recompute = true"});
  }
  SECTION("a batch larger than the data") {
    scratch_folder data;
    write(data.path / "some.txt", std::string(90, 'x'));
    refused_with(4, {"data.path=" + (data.path / "some.txt").string()},
                 {"some.txt", "samples", "training.micro_batches (8)", "smaller batch"});
  }
}

TEST_CASE("a model that does not fit says which block, by how much, and what to raise",
          "[net][input]") {
  scratch_folder folder;
  auto end = run(tiny("run", folder.path / "run", {"nodes.memory=1MB"}), 60s);
  require_end(end, 10, {"block 0 (embedding)", "nodes.memory", "MiB more"});
  require_tidy(folder.path);
}

TEST_CASE("data that cannot be used is named with what is wrong with it", "[net][input]") {
  scratch_folder data;
  auto in = [&](const char* name) { return (data.path / name).string(); };
  SECTION("missing") {
    refused_with(4, {"data.path=" + in("none.txt")}, {"none.txt", "does not exist", "data.path"});
  }
  SECTION("empty") {
    write(in("empty.txt"), "");
    refused_with(4, {"data.path=" + in("empty.txt")}, {"empty.txt", "is empty"});
  }
  SECTION("short") {
    write(in("short.txt"), "hi\n");
    refused_with(4, {"data.path=" + in("short.txt")},
                 {"short.txt", "3 tokens", "needs 33", "seq_len"});
  }
  SECTION("a folder without a file of its kind") {
    refused_with(4, {"data.kind=nanogpt", "data.path=" + data.path.string()},
                 {data.path.string(), "*.bin"});
  }
  SECTION("a kind that nobody registered") {
    refused_with(3, {"data.kind=nanogbt"}, {"data.kind", "nanogbt", "nanogpt"});
  }
  SECTION("may not be read") {
    if (::geteuid() == 0) return;  // root may
    write(in("secret.txt"), std::string(10000, 'x'));
    fs::permissions(in("secret.txt"), fs::perms::none);
    refused_with(10, {"data.path=" + in("secret.txt")}, {"secret.txt", "ermission"});
  }
}

TEST_CASE("token files are checked before a node starts", "[net][input]") {
  scratch_folder data;
  auto file = (data.path / "tokens.bin").string();
  SECTION("a nanoGPT token beyond the vocabulary, with its place") {
    std::vector<std::uint16_t> tokens(20000, 7);
    tokens[12345] = 300;
    write(file, bytes_of(tokens));
    refused_with(4, {"data.kind=nanogpt", "data.path=" + file},
                 {"tokens.bin", "token 300", "byte 24690", "model.vocab_size = 256"});
  }
  SECTION("half a token") {
    write(file, std::string(20001, '\1'));
    refused_with(4, {"data.kind=nanogpt", "data.path=" + file},
                 {"tokens.bin", "odd number of bytes"});
  }
  std::vector<std::int32_t> header(256, 0);
  header[0] = 20240520, header[1] = 1, header[2] = 10000;
  std::string tokens(20000, '\0');
  auto llmc = [&](const std::vector<std::string>& told) {
    write(file, bytes_of(header) + tokens);
    refused_with(4, {"data.kind=llmc", "data.path=" + file}, told);
  };
  SECTION("an llm.c file of another magic") {
    header[0] = 1234;
    llmc({"tokens.bin", "1234", "20240520"});
  }
  SECTION("an llm.c file of another version") {
    header[1] = 9;
    llmc({"tokens.bin", "version 9", "version 1"});
  }
  SECTION("an llm.c file that is cut off") {
    tokens.pop_back();
    llmc({"tokens.bin", "promises 10000 tokens", "cut off"});
  }
  SECTION("a negative count of llm.c tokens") {
    header[2] = -1;
    llmc({"tokens.bin", "-1 tokens"});
  }
}

TEST_CASE("an address that others reach is refused without --insecure", "[net][input]") {
  refused_with(3, {"network.host=0.0.0.0"}, {"network.host 0.0.0.0", "--insecure"});
  CHECK(run({"node", "--join", "127.0.0.1:9", "--host", "0.0.0.0"}, 30s).exit_code == 3);
}

TEST_CASE("a control port in use is named", "[net][input]") {
  auto taken = socket_to::listen();
  auto port = std::to_string(taken.port());
  refused_with(11, {"network.control_port=" + port},
               {port, "in use", "set another network.control_port"});
}

TEST_CASE("folders that cannot be written are named", "[net][input]") {
  scratch_folder place;
  write(place.path / "file", "mine");
  SECTION("the checkpoints' is a file") {
    refused_with(10, {"checkpoint.folder=" + (place.path / "file").string()},
                 {"file", "move it away"});
  }
  SECTION("the job's is a file") {
    auto end = run(tiny("run", place.path / "file"), 30s);
    require_end(end, 10, {"file", "move it away"});
  }
  SECTION("the job's may not be written") {
    if (::geteuid() == 0) return;  // root may
    fs::create_directory(place.path / "closed");
    fs::permissions(place.path / "closed", fs::perms::owner_read | fs::perms::owner_exec);
    require_end(run(tiny("run", place.path / "closed"), 30s), 10, {"closed", "ermission"});
  }
  SECTION("the job's is on a file system that takes no files") {
    require_end(run(tiny("run", "/proc/shoal"), 30s), 74, {"/proc/shoal", "check the path"});
  }
  CHECK(fs::file_size(place.path / "file") == 4);
}
