// What runs and profiles learn of links between processes.

#include <catch2/catch.hpp>

#include "net/harness.hpp"

using namespace shoal::test;

TEST_CASE("a running job measures the link that it emulates, and its bits do not notice",
          "[net][links]") {
  // Activations of 128 KiB: large enough to be measured.
  const std::vector<std::string> sets{"training.micro_batch_size=32", "training.steps=12",
                                      "lr_scheduler.warmup_steps=4"};
  auto& reference = reference_of(sets);
  scratch_folder folder;
  auto job = folder.path / "run";
  auto slow = sets;
  slow.insert(slow.end(), {"emulate.rate=25MB/s", "emulate.delay=1ms", "parallelism.depth=3"});
  program train(tiny("run", job, slow));
  REQUIRE(wait_for_step(job, 8));
  auto status = status_of(job);
  INFO(status.dump());
  auto rate = status["link_bytes_per_s"].get<double>();
  CHECK(rate != 25e6);  // as it was estimated: nothing was measured
  CHECK(rate == Approx(25e6).epsilon(0.2));
  require_end(train.wait(), 0);
  CHECK(compare(steps_of(job / "metrics.jsonl"), reference) == reference.size());
  require_tidy(job);
}
