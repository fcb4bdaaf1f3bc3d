#pragma once
// Signals as calls on a thread, not as interruptions.

#include <functional>
#include <thread>
#include <vector>

namespace shoal::app {

/// While it lives, the given signals come to `on_signal`, on a thread of its own. Make it before
/// any other thread: threads inherit that the signals are blocked.
class signal_watch {
public:
  signal_watch(std::vector<int> signals, std::function<void(int)> on_signal);
  ~signal_watch();
  signal_watch(const signal_watch&) = delete;
  signal_watch& operator=(const signal_watch&) = delete;

private:
  std::thread thread_;
};

}  // namespace shoal::app
