#include "storage/checkpoint_folder.hpp"

#include <catch2/catch.hpp>

#include <cerrno>
#include <filesystem>

#include <unistd.h>

#include "storage/manifest_codec.hpp"
#include "unit/storage/fault_files.hpp"
#include "unit/storage/samples.hpp"

using namespace shoal;
using namespace shoal::storage;
using namespace shoal::test;

namespace {

constexpr block_index block_count = 3;

std::vector<step_id> usable_steps(const checkpoint_folder& folder) {
  const auto listing = folder.list(job_text);
  REQUIRE(listing);
  std::vector<step_id> steps;
  for (auto& m : listing->usable) steps.push_back(m.step);
  return steps;
}

/// Whether every block of the checkpoint loads as it was written from `seed`.
bool loads(const checkpoint_folder& folder, step_id step, std::uint64_t seed) {
  folder_store store(folder, job_text);
  for (block_index block = 0; block < block_count; ++block) {
    const auto state = store.load(step, block);
    if (!state || !same(*state, make_block(block, seed + step.value))) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a checkpoint is written, listed newest first, loaded and deleted", "[storage]") {
  temporary_folder place;
  const checkpoint_folder folder(place / "deep/checkpoints");
  CHECK(folder.list(job_text)->usable.empty());
  REQUIRE(folder.preflight(1000));
  for (std::uint64_t step : {20, 10, 30}) REQUIRE(write_checkpoint(folder, {step}, block_count, 1));
  CHECK(usable_steps(folder) == std::vector<step_id>{{30}, {20}, {10}});
  CHECK(folder.list(job_text)->others.empty());
  for (std::uint64_t step : {20, 10, 30}) CHECK(loads(folder, {step}, 1));
  CHECK(std::filesystem::exists(place / "deep/checkpoints/step-00000020/block-002.safetensors"));

  REQUIRE(folder.remove({20}));
  REQUIRE(folder.remove({20}));
  CHECK(usable_steps(folder) == std::vector<step_id>{{30}, {10}});
  CHECK_FALSE(std::filesystem::exists(place / "deep/checkpoints/step-00000020"));
  CHECK_FALSE(loads(folder, {20}, 1));
}

TEST_CASE(
  "after a crash at any call the checkpoint before loads and the new one is whole or absent",
  "[storage]") {
  // Once for a new step, once for the same step again, as after a morph: then the bytes are equal.
  const std::uint64_t next_step = GENERATE(10u, 20u);
  std::uint64_t calls = 0;
  for (auto how : {fault::crash, fault::crash_after, fault::crash_torn})
    for (auto remembers : {memory::all, memory::synced, memory::some})
      for (std::uint64_t at = 0, done = 0; done == 0; ++at) {
        fault_files files;
        const checkpoint_folder folder("/checkpoints", files);
        REQUIRE(folder.preflight(0));
        REQUIRE(write_checkpoint(folder, {10}, block_count, 1));
        files.plan(at, how);
        const auto written = write_checkpoint(folder, {next_step}, block_count, 1);
        if (written && !files.crashed()) done = 1;
        calls = std::max(calls, at);
        INFO("crash " << int(how) << " at call " << at << ", disk " << int(remembers));
        files.restart(remembers, at);
        REQUIRE(folder.remove_stale());
        REQUIRE(loads(folder, {10}, 1));
        for (auto step : usable_steps(folder)) REQUIRE(loads(folder, step, 1));
        if (written) REQUIRE(loads(folder, {next_step}, 1));
        // And the next save succeeds, whatever lies around.
        REQUIRE(write_checkpoint(folder, {30}, block_count, 1));
        REQUIRE(loads(folder, {30}, 1));
        const auto unfinished = folder.remove_unfinished_before({30});
        REQUIRE(unfinished);
        REQUIRE(folder.list(job_text)->others.empty());
        for (auto& [path, bytes] : files.contents()) REQUIRE_FALSE(is_temporary(path));
      }
  CHECK(calls > 20);
}

TEST_CASE("after a crash while deleting, a checkpoint is whole or not listed", "[storage]") {
  for (auto remembers : {memory::all, memory::synced, memory::some})
    for (std::uint64_t at = 0, done = 0; done == 0; ++at) {
      fault_files files;
      const checkpoint_folder folder("/checkpoints", files);
      REQUIRE(folder.preflight(0));
      for (std::uint64_t step : {10, 20}) REQUIRE(write_checkpoint(folder, {step}, block_count, 1));
      files.plan(at, fault::crash);
      const auto removed = folder.remove({10});
      if (removed && !files.crashed()) done = 1;
      files.restart(remembers, at);
      INFO("crash at call " << at << ", disk " << int(remembers));
      for (auto step : usable_steps(folder)) REQUIRE(loads(folder, step, 1));
      REQUIRE(loads(folder, {20}, 1));
      REQUIRE(folder.remove_unfinished_before({20}));
      REQUIRE(folder.list(job_text)->others.empty());  // its manifest went first
      REQUIRE(folder.remove({10}));
      REQUIRE(usable_steps(folder) == std::vector<step_id>{{20}});
    }
}

TEST_CASE("every bit flipped and every cut of a checkpoint's files is found", "[storage]") {
  fault_files files;
  const checkpoint_folder folder("/checkpoints", files);
  REQUIRE(folder.preflight(0));
  REQUIRE(write_checkpoint(folder, {10}, 1, 1));
  const auto sound = make_block(0, 11);
  const auto contents = files.contents();
  for (auto& entry : contents) {
    const auto &path = entry.first, &bytes = entry.second;
    INFO(path);
    auto found_out = [&] {
      folder_store store(folder, job_text);
      const auto state = store.load({10}, 0);
      // A space of the manifest may become another kind of space.
      if (state) return same(*state, sound) && path.ends_with("manifest.json");
      return state.error().code == errc::damaged || state.error().code == errc::foreign;
    };
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      auto flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      files.put(path, flipped);
      REQUIRE(found_out());
    }
    for (std::size_t size = 0; size + 1 < bytes.size(); ++size) {
      files.put(path, bytes.substr(0, size));
      REQUIRE(found_out());
      REQUIRE(folder.list(job_text)->usable.empty());
    }
    files.put(path, bytes + '\0');
    REQUIRE(found_out());
    REQUIRE(folder.list(job_text)->usable.empty());
    files.put(path, bytes);
  }
  CHECK(usable_steps(folder).size() == 1);
}

TEST_CASE("unusable checkpoints are listed with their reasons and not deleted", "[storage]") {
  temporary_folder place;
  const checkpoint_folder folder(place.path());
  for (std::uint64_t step : {1, 2, 3, 4, 5, 6, 7})
    REQUIRE(write_checkpoint(folder, {step}, block_count, 1));
  std::filesystem::remove(place / "step-00000002/manifest.json");
  std::filesystem::remove(place / "step-00000003/block-001.safetensors");
  std::filesystem::resize_file(place / "step-00000004/block-001.safetensors", 10);
  write_text(place / "step-00000005/manifest.json", "{}");
  std::filesystem::rename(place / "step-00000006", place / "step-00000066");
  std::filesystem::create_directory_symlink(place / "step-00000007", place / "step-00000077");
  std::filesystem::create_directory(place / "step-8");
  write_text(place / "step-00000009", "a file");
  write_text(place / "notes.txt", "of a person");

  const auto listing = folder.list(job_text);
  REQUIRE(listing);
  CHECK(usable_steps(folder) == std::vector<step_id>{{7}, {1}});
  std::map<std::uint64_t, std::string> reasons;
  for (auto& [step, why] : listing->others) {
    CHECK(why.code == errc::damaged);
    reasons[step.value] = why.text;
  }
  REQUIRE(reasons.size() == 7);
  CHECK_THAT(reasons[2], Catch::Contains("a save that was not finished"));
  CHECK_THAT(reasons[3], Catch::Contains("block-001.safetensors"));
  CHECK_THAT(reasons[4], Catch::Contains("is 10 bytes long"));
  CHECK_THAT(reasons[5], Catch::Contains("\"format\" is missing"));
  CHECK_THAT(reasons[66], Catch::Contains("is that of step 6"));
  CHECK_THAT(reasons[77], Catch::Contains("links are not followed"));
  CHECK_THAT(reasons[9], Catch::Contains("is no folder"));

  const auto removed = folder.remove_unfinished_before({7});
  REQUIRE(removed);
  CHECK(*removed == std::vector<step_id>{{2}});
  CHECK(std::filesystem::exists(place / "step-00000003/manifest.json"));
  CHECK(folder.remove({77}).error().code == errc::damaged);
  CHECK(loads(folder, {7}, 1));
}

TEST_CASE("a checkpoint of another job is listed as foreign and not loaded", "[storage]") {
  fault_files files;
  const checkpoint_folder folder("/checkpoints", files);
  REQUIRE(folder.preflight(0));
  REQUIRE(write_checkpoint(folder, {10}, block_count, 1));
  const std::string other = "model.dim = 64\nmodel.kind = gpt2\ntraining.seed = 1\n";
  const auto listing = folder.list(other);
  REQUIRE(listing);
  CHECK(listing->usable.empty());
  REQUIRE(listing->others.size() == 1);
  CHECK(listing->others[0].why.code == errc::foreign);
  folder_store store(folder, other);
  const auto state = store.load({10}, 0);
  REQUIRE_FALSE(state);
  CHECK(state.error().code == errc::foreign);
  CHECK_THAT(state.error().text, Catch::Contains("model.dim"));
}

TEST_CASE("a sound block in the wrong place is found", "[storage]") {
  fault_files files;
  const checkpoint_folder folder("/checkpoints", files);
  REQUIRE(folder.preflight(0));
  REQUIRE(write_checkpoint(folder, {10}, block_count, 1));
  REQUIRE(write_checkpoint(folder, {20}, block_count, 1));
  const auto contents = files.contents();
  const std::string at = "/checkpoints/step-00000020/block-000.safetensors";
  folder_store store(folder, job_text);

  SECTION("an older shard put back: the hash differs") {
    files.put(at, contents.at("/checkpoints/step-00000010/block-000.safetensors"));
  }
  SECTION("another block, and a manifest that agrees with it") {
    const auto one = contents.at("/checkpoints/step-00000020/block-001.safetensors");
    files.put(at, one);
    auto m = *folder.read_manifest({20});
    const auto name = m.parts[0].file;
    m.parts[0] = m.parts[1];
    m.parts[0].block = 0;
    m.parts[0].file = name;
    m.weights_digest =
      core::model_digest({m.parts[0].digest, m.parts[1].digest, m.parts[2].digest});
    files.put("/checkpoints/step-00000020/manifest.json", encode_manifest(m));
  }
  const auto state = store.load({20}, 0);
  REQUIRE_FALSE(state);
  CHECK(state.error().code == errc::damaged);
  CHECK_THAT(state.error().text, Catch::Contains(at));
  CHECK(store.load({20}, 1));
  CHECK(store.load({20}, 99).error().code == errc::foreign);
}

TEST_CASE("links in a checkpoint are not followed", "[storage]") {
  temporary_folder place;
  const checkpoint_folder folder(place.path());
  REQUIRE(write_checkpoint(folder, {10}, block_count, 1));
  const auto block = place / "step-00000010/block-000.safetensors";
  std::filesystem::rename(block, place / "elsewhere");
  std::filesystem::create_symlink(place / "elsewhere", block);
  folder_store store(folder, job_text);
  CHECK(store.load({10}, 0).error().code == errc::damaged);
  CHECK(folder.list(job_text)->usable.empty());
  REQUIRE(folder.remove({10}));
  CHECK(std::filesystem::exists(place / "elsewhere"));  // the link went, not what it points to
  CHECK_FALSE(std::filesystem::exists(place / "step-00000010"));
}

TEST_CASE("a folder that another node made but did not sync is durable with the manifest",
          "[storage]") {
  fault_files files;
  const checkpoint_folder folder("/checkpoints", files);
  REQUIRE(folder.preflight(0));
  REQUIRE(files.make_folder("/checkpoints/step-00000010") == 0);
  REQUIRE(write_checkpoint(folder, {10}, block_count, 1));
  files.restart(memory::synced);
  CHECK(loads(folder, {10}, 1));
}

TEST_CASE("what people put into a checkpoint's folder is not deleted", "[storage]") {
  temporary_folder place;
  const checkpoint_folder folder(place.path());
  REQUIRE(write_checkpoint(folder, {10}, block_count, 1));
  write_text(place / "step-00000010/notes.txt", "the good one");
  write_text(place / "step-00000010/block-000.safetensors.tmp.1.1", "of a crash");
  REQUIRE(folder.remove({10}));
  CHECK(usable_steps(folder).empty());
  std::vector<folder_entry> left;
  REQUIRE(real_file_system().list(place / "step-00000010", left) == 0);
  REQUIRE(left.size() == 1);
  CHECK(left[0].name == "notes.txt");
}

TEST_CASE("a manifest is not written before its files are there", "[storage]") {
  fault_files files;
  const checkpoint_folder folder("/checkpoints", files);
  REQUIRE(folder.preflight(0));
  auto m = *write_checkpoint(folder, {10}, block_count, 1);
  m.step = {20};
  const auto written = folder.write_manifest(m);
  REQUIRE_FALSE(written);
  CHECK_THAT(written.error().text, Catch::Contains("do all nodes see the same"));
  m.step = {10};
  m.parts[1].bytes += 1;
  CHECK_FALSE(folder.write_manifest(m));
  m.parts.pop_back();
  CHECK_FALSE(folder.write_manifest(m));
}

TEST_CASE("a full disk drops the save, keeps the old checkpoint and leaves nothing behind",
          "[storage]") {
  fault_files files;
  const checkpoint_folder folder("/checkpoints", files);
  REQUIRE(folder.preflight(0));
  REQUIRE(write_checkpoint(folder, {10}, block_count, 1));
  std::uint64_t used = 0;
  for (auto& [path, bytes] : files.contents()) used += bytes.size();
  for (std::uint64_t room = 0; room < used; room += 97) {
    files.set_capacity(used + room);
    const auto written = write_checkpoint(folder, {20}, block_count, 1);
    INFO(room << " bytes free");
    REQUIRE_FALSE(written);
    REQUIRE(written.error().code == errc::no_space);
    REQUIRE(loads(folder, {10}, 1));
    for (auto& [path, bytes] : files.contents()) REQUIRE_FALSE(is_temporary(path));
    REQUIRE(folder.remove({20}));
  }
  CHECK(folder.preflight(used).error().code == errc::no_space);
  files.set_capacity(2 * used);
  CHECK(write_checkpoint(folder, {20}, block_count, 1));
}

TEST_CASE("a disk error is answered with another file, and a lasting one with an error",
          "[storage]") {
  fault_files files;
  const checkpoint_folder folder("/checkpoints", files);
  REQUIRE(folder.preflight(0));
  REQUIRE(folder.write_block({10}, make_block(0, 1)));  // the folder exists now
  const auto before = files.count();
  REQUIRE(folder.write_block({10}, make_block(0, 1)));
  const auto calls_a_block = files.count() - before;
  for (std::uint64_t at = 0; at < calls_a_block; ++at) {
    files.plan(at, fault::error, EIO);
    REQUIRE(folder.write_block({10}, make_block(0, 1)));
    for (auto& [path, bytes] : files.contents()) REQUIRE_FALSE(is_temporary(path));
  }
  files.fail_always("sync", EIO);
  const auto written = folder.write_block({10}, make_block(0, 1));
  REQUIRE_FALSE(written);
  CHECK(written.error().code == errc::io);
  files.fail_always("sync", 0);
  REQUIRE(folder.write_block({10}, make_block(0, 1)));
  files.fail_always("read", EIO);
  CHECK(files.contents().size() == 1);
}

TEST_CASE("a disk that cannot be read is an error of the disk, not damage", "[storage]") {
  fault_files files;
  const checkpoint_folder folder("/checkpoints", files);
  REQUIRE(folder.preflight(0));
  REQUIRE(write_checkpoint(folder, {10}, block_count, 1));
  files.fail_always("read", EIO);
  folder_store store(folder, job_text);
  CHECK(store.load({10}, 0).error().code == errc::io);
  files.fail_always("read", 0);
  CHECK(store.load({10}, 0));
}

TEST_CASE("parameters that changed in memory are not saved", "[storage]") {
  fault_files files;
  const checkpoint_folder folder("/checkpoints", files);
  auto state = make_block(0, 1);
  state.tensors[0].bytes.data[3] ^= std::byte{16};
  const auto written = folder.write_block({10}, state);
  REQUIRE_FALSE(written);
  CHECK(written.error().code == errc::damaged);
  CHECK(files.contents().empty());
}

TEST_CASE("the check before a job starts says what is wrong with the folder", "[storage]") {
  temporary_folder place;
  REQUIRE(checkpoint_folder(place / "new").preflight(0));
  CHECK(std::filesystem::is_empty(place / "new"));
  write_text(place / "file", "");
  CHECK(checkpoint_folder(place / "file").preflight(0).error().code == errc::no_permission);
  const auto small = checkpoint_folder(place / "new").preflight(1ull << 60);
  REQUIRE_FALSE(small);
  CHECK(small.error().code == errc::no_space);
  CHECK_THAT(small.error().text, Catch::Contains("checkpoint.folder"));
  if (::geteuid() != 0) {  // nothing is denied to root
    std::filesystem::create_directory(place / "closed");
    std::filesystem::permissions(place / "closed", std::filesystem::perms::owner_read);
    CHECK(checkpoint_folder(place / "closed").preflight(0).error().code == errc::no_permission);
  }
  fault_files files;
  files.fail_always("make_folder", EROFS);
  CHECK(checkpoint_folder("/x", files).preflight(0).error().code == errc::no_permission);
}

TEST_CASE("step folders have one name each", "[storage]") {
  CHECK(step_folder_name({120}) == "step-00000120");
  CHECK(step_folder_name({123456789012}) == "step-123456789012");
  CHECK(block_file_name(7) == "block-007.safetensors");
  step_id step;
  CHECK((parse_step_folder_name("step-00000120", step) && step == step_id{120}));
  CHECK((parse_step_folder_name("step-123456789012", step) && step == step_id{123456789012}));
  for (auto* name : {"step-", "step-120", "step-000000120", "step-0000012x", "step-+0000120",
                     "step-00000120.tmp", "Step-00000120", "step-99999999999999999999999"}) {
    INFO(name);
    CHECK_FALSE(parse_step_folder_name(name, step));
  }
}
