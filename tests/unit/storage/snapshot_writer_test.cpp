#include "storage/snapshot_writer.hpp"

#include <catch2/catch.hpp>

#include <cerrno>
#include <future>

#include "unit/storage/fault_files.hpp"
#include "unit/storage/samples.hpp"

using namespace shoal;
using namespace shoal::storage;
using namespace shoal::test;

namespace {

core::runner_snapshot snapshot_of(step_id step) {
  return {{5}, step, {make_block(0, step.value), make_block(1, step.value)}};
}

/// The answer to one submit; a second answer would throw.
struct answer {
  std::promise<core::parts_written> promise;
  std::future<core::parts_written> future = promise.get_future();
  snapshot_writer::callback take() {
    return [this](core::parts_written what) { promise.set_value(std::move(what)); };
  }
  bool is_there() const {
    return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
};

/// A disk that stands still at the first file until told to go on.
struct stuck_disk {
  stuck_disk() {
    files.before_calls([this](const std::string& name) {
      if (name != "create" || stood) return;
      stood = true;
      reached.set_value();
      go_on.get_future().wait();
    });
  }
  fault_files files;
  bool stood = false;
  std::promise<void> reached;
  std::promise<void> go_on;
};

}  // namespace

TEST_CASE("a snapshot is written beside the caller and its parts are told", "[storage]") {
  fault_files files;
  const checkpoint_folder folder("/checkpoints", files);
  answer one;
  {
    snapshot_writer writer(folder);
    writer.submit(snapshot_of({10}), one.take());
    const auto told = one.future.get();
    CHECK(told.failure.empty());
    CHECK(told.view == view_id{5});
    CHECK(told.step == step_id{10});
    REQUIRE(told.parts.size() == 2);
    CHECK(told.parts[1].file == "block-001.safetensors");
  }
  CHECK(files.contents().size() == 2);
}

TEST_CASE("while the disk is slow the newer generation takes the place of the waiting one",
          "[storage]") {
  stuck_disk disk;
  snapshot_writer writer(checkpoint_folder("/checkpoints", disk.files));
  answer first, second, third;
  writer.submit(snapshot_of({10}), first.take());
  disk.reached.get_future().wait();
  writer.submit(snapshot_of({20}), second.take());
  CHECK_FALSE(second.is_there());
  writer.submit(snapshot_of({30}), third.take());
  REQUIRE(second.is_there());  // told at once, though the disk stands still
  const auto dropped = second.future.get();
  CHECK(dropped.step == step_id{20});
  CHECK(dropped.parts.empty());
  CHECK_THAT(dropped.failure, Catch::Contains("gave way to that of step 30"));
  CHECK_FALSE(first.is_there());
  disk.go_on.set_value();
  CHECK(first.future.get().failure.empty());
  CHECK(third.future.get().parts.size() == 2);
}

TEST_CASE("a manifest is written beside the caller, before the generation that waits",
          "[storage]") {
  stuck_disk disk;
  const checkpoint_folder folder("/checkpoints", disk.files);
  snapshot_writer writer(folder);
  answer first, second;
  writer.submit(snapshot_of({10}), first.take());
  disk.reached.get_future().wait();
  writer.submit(snapshot_of({20}), second.take());
  core::manifest m;
  m.job_text = "job";
  m.step = {10};
  std::promise<result<void>> completed;
  bool second_came_first = false;
  writer.complete(m, [&](result<void> done) {
    second_came_first = second.is_there();
    completed.set_value(std::move(done));
  });
  auto told = completed.get_future();
  CHECK(told.wait_for(std::chrono::seconds(0)) != std::future_status::ready);
  disk.go_on.set_value();
  (void)told.get();
  CHECK_FALSE(second_came_first);
  CHECK(second.future.get().failure.empty());
  writer.stop();
  errc why{};
  writer.complete(m, [&](result<void> done) { why = done.error().code; });
  CHECK(why == errc::halted);
}

TEST_CASE("stop finishes the block being written and drops the rest", "[storage]") {
  stuck_disk disk;
  snapshot_writer writer(checkpoint_folder("/checkpoints", disk.files));
  answer first, second;
  writer.submit(snapshot_of({10}), first.take());
  disk.reached.get_future().wait();
  writer.submit(snapshot_of({20}), second.take());
  auto stopped = std::async(std::launch::async, [&] { writer.stop(); });
  CHECK_THAT(second.future.get().failure, Catch::Contains("stopped before"));
  CHECK_FALSE(first.is_there());
  disk.go_on.set_value();
  stopped.wait();
  CHECK_THAT(first.future.get().failure, Catch::Contains("stopped while"));
  CHECK(disk.files.contents().size() == 1);  // the block that was being written is whole
  writer.stop();
  answer late;
  writer.submit(snapshot_of({40}), late.take());
  CHECK_THAT(late.future.get().failure, Catch::Contains("has stopped"));
}

TEST_CASE("a generation that cannot be written is told with the reason", "[storage]") {
  fault_files files;
  files.set_capacity(100);
  snapshot_writer writer(checkpoint_folder("/checkpoints", files));
  answer one;
  writer.submit(snapshot_of({10}), one.take());
  const auto told = one.future.get();
  CHECK(told.parts.empty());
  CHECK_THAT(told.failure, Catch::Contains("free space"));
}
