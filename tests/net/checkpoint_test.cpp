// What stands on disk when a job begins again: damage is found, told, and gone around.

#include <signal.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "net/harness.hpp"

using namespace shoal::test;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> often{"checkpoint.every=5", "emulate.delay=20ms"};

/// A job that was interrupted after its checkpoint of step 15, made once; a copy in `folder`.
void interrupted_job(const fs::path& folder) {
  static scratch_folder made;
  auto job = made.path / "run";
  if (!fs::exists(job)) {
    program train(tiny("run", job, often));
    auto saved = [](const nlohmann::json& line) {
      return line.value("event", "") == "checkpoint" &&
             line["text"] == "checkpoint of step 15 is there";
    };
    REQUIRE(wait_for_line(job, saved));
    train.signal(SIGINT);
    require_end(train.wait(), 40, {"interrupted"});
    require_tidy(job);
    REQUIRE_FALSE(fs::exists(job / "checkpoints" / "step-00000020"));
  }
  fs::copy(job, folder, fs::copy_options::recursive);
}

/// Runs it to its end, and looks at every step.
void goes_on(const fs::path& job, const std::vector<std::string>& told) {
  auto& reference = reference_of();
  require_end(run(tiny("run", job, {"checkpoint.every=5"}), 60s), 0, told);
  CHECK(compare(steps_of(job / "metrics.jsonl"), reference) == reference.size());
  require_tidy(job);
}

void flip_byte_of(const fs::path& path, std::uint64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  auto byte = static_cast<char>(file.get());
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ 0x10));
  REQUIRE(file.good());
}

}  // namespace

TEST_CASE("a job goes on from its newest sound checkpoint", "[net][checkpoint]") {
  scratch_folder place;
  auto job = place.path / "run";
  interrupted_job(job);
  auto newest = job / "checkpoints" / "step-00000015";
  auto block = newest / "block-002.safetensors";
  SECTION("the newest itself") { goes_on(job, {"from step 15"}); }
  SECTION("a byte of a block's numbers is flipped") {
    flip_byte_of(block, fs::file_size(block) - 100);
    goes_on(job, {"checkpoint 15 is not used any more", "block-002", "from step 10"});
  }
  SECTION("a byte of a block's header is flipped") {
    flip_byte_of(block, 20);
    goes_on(job, {"checkpoint 15 is not used any more", "block-002", "from step 10"});
  }
  SECTION("a block is cut off") {
    fs::resize_file(block, fs::file_size(block) / 2);
    goes_on(job, {"checkpoint 15 is not used", "block-002", "from step 10"});
  }
  SECTION("a block is missing") {
    fs::remove(block);
    goes_on(job, {"checkpoint 15 is not used", "block-002", "from step 10"});
  }
  SECTION("a byte of the manifest is flipped") {
    flip_byte_of(newest / "manifest.json", 200);
    goes_on(job, {"checkpoint 15 is not used", "manifest", "from step 10"});
  }
  SECTION("the manifest is empty") {
    fs::resize_file(newest / "manifest.json", 0);
    goes_on(job, {"checkpoint 15 is not used", "manifest", "from step 10"});
  }
  SECTION("all checkpoints are damaged: the job begins again, which is the same") {
    for (auto step : {"step-00000005", "step-00000010", "step-00000015"})
      fs::resize_file(job / "checkpoints" / step / "block-000.safetensors", 3);
    goes_on(job, {"from step 0"});
  }
  SECTION("the ledger is gone: checkpoints are enough") {
    fs::remove_all(job / "ledger");
    fs::remove(job / "ledger.sequence");
    goes_on(job, {"from step 15"});
  }
}

TEST_CASE("checkpoints of another job are a mistake to stop at", "[net][checkpoint]") {
  scratch_folder place;
  auto job = place.path / "run";
  interrupted_job(job);
  auto manifest = job / "checkpoints" / "step-00000015" / "manifest.json";
  auto size = fs::file_size(manifest);
  SECTION("the whole folder") {
    require_end(run(tiny("run", job, {"job.seed=8"}), 30s), 30,
                {job.string(), "folder of its own"});
  }
  SECTION("its checkpoints only") {
    auto other = tiny("run", place.path / "other",
                      {"job.seed=8", "checkpoint.folder=" + (job / "checkpoints").string()});
    require_end(run(other, 30s), 30, {"step 15", "another job", "checkpoint.folder"});
  }
  CHECK(fs::file_size(manifest) == size);
}

TEST_CASE("shoal digest finds the byte that shoal run would not use", "[net][checkpoint]") {
  scratch_folder place;
  auto job = place.path / "run";
  interrupted_job(job);
  auto sound = run({"digest", job.string(), "--json"}, 30s);
  require_end(sound, 0);
  CHECK(nlohmann::json::parse(sound.out)["digest"] == reference_of().at(15).value("digest", ""));
  flip_byte_of(job / "checkpoints" / "step-00000015" / "block-003.safetensors", 5000);
  require_end(run({"digest", job.string()}, 30s), 30, {"block-003"});
}
