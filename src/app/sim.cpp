// `shoal sim`: seeds of the cluster simulator, on all cores.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "app/commands.hpp"
#include "sim/cluster.hpp"
#include "telemetry/words.hpp"

namespace shoal::app {

namespace {

struct totals {
  std::uint64_t runs = 0, events = 0, steps = 0, morphs = 0, faults = 0, rollbacks = 0;
  std::uint64_t log_hash = 0;  // of all runs, whatever their order
  double virtual_s = 0;
  struct failure {
    std::uint64_t seed;
    std::string violation;
  };
  std::vector<failure> failures;

  void add(std::uint64_t seed, const sim::cluster_outcome& out) {
    ++runs;
    events += out.events;
    steps += out.steps;
    morphs += out.morphs;
    faults += out.crashes + out.freezes + out.cuts + out.glitches + out.supervisor_crashes;
    rollbacks += out.rollbacks;
    log_hash ^= out.log_hash;
    virtual_s += std::chrono::duration<double>(out.virtual_time).count();
    if (!out.ok) failures.push_back({seed, out.violation});
  }
};

// Each thread takes the next seed; a seed is one thread's alone, so its run does not depend on
// them.
totals run_seeds(std::uint64_t first, std::uint64_t count) {
  totals all;
  std::mutex mutex;
  std::atomic<std::uint64_t> next = 0;
  auto work = [&] {
    for (std::uint64_t i; (i = next++) < count;) {
      auto out = sim::run_cluster({.seed = first + i});
      std::lock_guard lock(mutex);
      all.add(first + i, out);
    }
  };
  std::vector<std::jthread> threads;
  auto cores = std::clamp<std::uint64_t>(std::thread::hardware_concurrency(), 1, count);
  for (std::uint64_t i = 0; i < cores; ++i) threads.emplace_back(work);
  threads.clear();
  std::sort(all.failures.begin(), all.failures.end(),
            [](auto& a, auto& b) { return a.seed < b.seed; });
  return all;
}

void tell(const sim_options& options, const totals& all) {
  if (options.json) {
    auto failed = nlohmann::ordered_json::array();
    for (auto& f : all.failures) failed.push_back({{"seed", f.seed}, {"violation", f.violation}});
    nlohmann::ordered_json line{{"seed", options.seed},
                                {"count", options.count},
                                {"ok", failed.empty()},
                                {"failures", failed},
                                {"events", all.events},
                                {"steps", all.steps},
                                {"morphs", all.morphs},
                                {"faults", all.faults},
                                {"rollbacks", all.rollbacks},
                                {"virtual_s", all.virtual_s},
                                {"log_hash", telemetry::hex_digest(all.log_hash)}};
    std::puts(line.dump().c_str());
    return;
  }
  for (auto& f : all.failures)
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(f.seed), f.violation.c_str());
  std::printf(
    "seeds %llu to %llu: %llu steps, %llu morphs, %llu faults, %llu returns, %s of "
    "virtual time, %zu failed; log %s\n",
    static_cast<unsigned long long>(options.seed),
    static_cast<unsigned long long>(options.seed + options.count - 1),
    static_cast<unsigned long long>(all.steps), static_cast<unsigned long long>(all.morphs),
    static_cast<unsigned long long>(all.faults), static_cast<unsigned long long>(all.rollbacks),
    telemetry::short_duration(all.virtual_s).c_str(), all.failures.size(),
    telemetry::hex_digest(all.log_hash).c_str());
}

}  // namespace

result<void> sim(const sim_options& options) {
  totals all;
  if (options.trace) {
    for (std::uint64_t i = 0; i < options.count; ++i)
      all.add(options.seed + i, sim::run_cluster({.seed = options.seed + i}, &std::cout));
    std::cout.flush();
  } else {
    all = run_seeds(options.seed, options.count);
  }
  tell(options, all);
  if (all.failures.empty()) return {};
  auto& first = all.failures.front();
  return {errc::internal, "seed " + std::to_string(first.seed) +
                            " broke a promise: " + first.violation + "; `shoal sim --seed " +
                            std::to_string(first.seed) + " --trace` shows how"};
}

}  // namespace shoal::app
