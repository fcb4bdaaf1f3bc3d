#include "app/signals.hpp"

#include <pthread.h>
#include <signal.h>

namespace shoal::app {

signal_watch::signal_watch(std::vector<int> signals, std::function<void(int)> on_signal) {
  sigset_t watched;
  ::sigemptyset(&watched);
  for (auto number : signals) ::sigaddset(&watched, number);
  ::sigaddset(&watched, SIGUSR2);  // our own: ends the thread
  ::pthread_sigmask(SIG_BLOCK, &watched, nullptr);
  thread_ = std::thread([watched, on_signal = std::move(on_signal)] {
    for (int number = 0;;) {
      if (::sigwait(&watched, &number) != 0) continue;
      if (number == SIGUSR2) return;
      on_signal(number);
    }
  });
}

signal_watch::~signal_watch() {
  ::pthread_kill(thread_.native_handle(), SIGUSR2);
  thread_.join();
}

}  // namespace shoal::app
