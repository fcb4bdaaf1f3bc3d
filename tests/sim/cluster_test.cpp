#include "sim/cluster.hpp"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include <catch2/catch.hpp>

#include "sim/mutations.hpp"

using namespace shoal;
using namespace shoal::sim;

namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  auto text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Runs seeds [first, first + count) and stops at the first that fails.
cluster_outcome run_seeds(std::uint64_t first, std::uint64_t count) {
  cluster_outcome all;
  all.ok = true;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    auto one = run_cluster({.seed = seed, .broken = {}});
    INFO("SHOAL_SIM_SEED=" << seed << " SHOAL_SIM_LOG=1 test_sim '[replay]' replays it");
    INFO(one.violation);
    REQUIRE(one.ok);
    all.events += one.events;
    all.steps += one.steps;
    all.morphs += one.morphs;
    all.crashes += one.crashes;
    all.freezes += one.freezes;
    all.cuts += one.cuts;
    all.glitches += one.glitches;
    all.joins += one.joins;
    all.leaves += one.leaves;
    all.supervisor_crashes += one.supervisor_crashes;
    all.rollbacks += one.rollbacks;
    all.roll_forwards += one.roll_forwards;
    all.adoptions += one.adoptions;
  }
  return all;
}

void print(std::uint64_t first, std::uint64_t count, const cluster_outcome& all) {
  std::cout << "seeds " << first << " to " << first + count - 1 << ": " << all.events << " events, "
            << all.steps << " steps, " << all.morphs << " views, " << all.crashes << " crashes, "
            << all.freezes << " freezes, " << all.cuts << " cuts, " << all.glitches << " glitches, "
            << all.joins << " joins, " << all.leaves << " leaves, " << all.supervisor_crashes
            << " supervisor crashes, " << all.adoptions << " adoptions, " << all.rollbacks
            << " rollbacks, " << all.roll_forwards << " roll-forwards" << std::endl;
}

}  // namespace

TEST_CASE("fixed seeds: whatever happens, the job ends with the bits of the undisturbed one",
          "[sim]") {
  auto count = from_environment("SHOAL_SIM_SEEDS", 1000) / 2;
  auto all = run_seeds(1, count);
  print(1, count, all);
  if (count < 500) return;  // a smaller sample need not have seen everything
  CHECK(all.rollbacks > 0);
  CHECK(all.roll_forwards > 0);
  CHECK(all.adoptions > 0);
  CHECK(all.supervisor_crashes > 0);
}

TEST_CASE("fresh seeds: whatever happens, the job ends with the bits of the undisturbed one",
          "[sim]") {
  auto count = from_environment("SHOAL_SIM_SEEDS", 1000) / 2;
  auto clock =
    static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  auto first = from_environment("SHOAL_SIM_FIRST", 1'000'000 + clock % 1'000'000'000);
  print(first, count, run_seeds(first, count));
}

TEST_CASE("a seed replays exactly", "[sim]") {
  for (std::uint64_t seed : {3, 14, 159}) {
    std::ostringstream log;
    auto once = run_cluster({.seed = seed, .broken = {}});
    auto again = run_cluster({.seed = seed, .broken = {}}, &log);
    CHECK(once.log_hash == again.log_hash);
    CHECK(once.events == again.events);
    CHECK(once.virtual_time == again.virtual_time);
    CHECK_FALSE(log.str().empty());
    CHECK(run_cluster({.seed = seed + 1, .broken = {}}).log_hash != once.log_hash);
  }
}

TEST_CASE("deliberate bugs in the core are found", "[sim]") {
  for (auto& bug : all_mutations()) {
    std::uint64_t seed = 1;
    cluster_outcome one;
    for (one.ok = true; one.ok && seed <= 1000; ++seed)
      one = run_cluster({.seed = seed, .broken = bug.make()});
    INFO(bug.name);
    CHECK_FALSE(one.ok);
    std::cout << "bug \"" << bug.name << "\": " << (one.ok ? "NOT FOUND" : one.violation)
              << std::endl;
  }
}

TEST_CASE("without faults a job needs one view", "[sim]") {
  auto calm = run_cluster({.seed = 5, .faults = false, .broken = {}});
  CHECK(calm.ok);
  CHECK(calm.morphs == 1);
}

TEST_CASE("replays the seed in SHOAL_SIM_SEED", "[.][replay]") {
  auto seed = from_environment("SHOAL_SIM_SEED", 1);
  auto log = std::getenv("SHOAL_SIM_LOG") != nullptr ? &std::cout : nullptr;
  auto one = run_cluster({.seed = seed, .broken = {}}, log);
  INFO(one.violation);
  CHECK(one.ok);
}
