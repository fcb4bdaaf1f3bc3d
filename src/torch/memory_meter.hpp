#pragma once
// How much memory tensors of this thread take while the meter lives: what is live, and the most
// that was. Counts what LibTorch's CPU allocator gives out and takes back in this thread.

#include <cstdint>
#include <memory>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

namespace shoal::engine {

class memory_meter {
public:
  memory_meter() : counter_(std::make_shared<counter>()), guard_(kind, counter_) {}

  /// Bytes allocated less bytes freed since the meter began; below 0 when more was freed.
  std::int64_t live() const { return counter_->live; }
  /// The largest `live` since the meter began, or since `restart_peak`.
  std::int64_t peak() const { return counter_->peak; }
  void restart_peak() { counter_->peak = counter_->live; }

private:
  static constexpr auto kind = c10::DebugInfoKind::PROFILER_STATE;

  struct counter final : c10::MemoryReportingInfoBase {
    void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t,
                           c10::Device) override {
      live += bytes;
      peak = live > peak ? live : peak;
    }
    bool memoryProfilingEnabled() const override { return true; }
    std::int64_t live = 0, peak = 0;
  };

  std::shared_ptr<counter> counter_;  // shared with LibTorch, which keeps it by thread
  c10::DebugInfoGuard guard_;
};

}  // namespace shoal::engine
