// A job that diverges: told with step, micro-batch and block; ended or gone on with, as it was
// asked for, and the same on three nodes as in one process.

#include <catch2/catch.hpp>

#include "net/harness.hpp"

using namespace shoal::test;

namespace {

std::vector<std::string> diverging(const std::string& policy) {
  return {"optimizer.name=sgd", "optimizer.lr=1e6", "training.max_norm=0",
          "lr_scheduler.warmup_steps=0", "training.on_not_finite=" + policy};
}

}  // namespace

TEST_CASE("a value that is not finite stops the job, by name", "[net][not-finite]") {
  scratch_folder folder;
  auto end = run(tiny("run", folder.path / "run", diverging("stop")), 60s);
  require_end(end, 22, {"step 3", "micro-batch 0", "block 1", "not finite", "after step 2"});
  CHECK(steps_of(folder.path / "run" / "metrics.jsonl").size() == 3);
  require_tidy(folder.path / "run");

  auto alone = run(tiny("reference", folder.path / "reference", diverging("stop")), 60s);
  require_end(alone, 22, {"step 3", "micro-batch 0"});
}

TEST_CASE("skipped steps are the same steps, on three nodes in a pipeline too",
          "[net][not-finite]") {
  auto& reference = reference_of(diverging("skip"));
  auto depth = GENERATE(0, 3);
  scratch_folder folder;
  auto sets = diverging("skip");
  sets.push_back("parallelism.depth=" + std::to_string(depth));
  require_end(run(tiny("run", folder.path / "run", sets), 60s), 0,
              {"is skipped", "through 0 morphs"});
  auto steps = steps_of(folder.path / "run" / "metrics.jsonl");
  CHECK(compare(steps, reference) == reference.size());
  for (auto& [step, line] : steps)
    CHECK(line.value("skipped", false) == reference.at(step).value("skipped", false));
  CHECK(steps.at(20)["skipped"] == true);
  require_tidy(folder.path / "run");
}
