#include "transport/memory/loop.hpp"

#include "base/assert.hpp"

namespace shoal::transport {

loop::loop(bool with_thread) : with_thread_(with_thread) {
  if (with_thread) thread_ = std::thread([this] { run(); });
}

loop::~loop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void loop::post(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void loop::at(core::time_point when, std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    timers_.emplace(when, std::move(task));
  }
  changed_.notify_one();
}

core::time_point loop::now() const {
  std::lock_guard lock(mutex_);
  return now_locked();
}

core::time_point loop::now_locked() const {
  return with_thread_ ? std::chrono::steady_clock::now() : hand_moved_;
}

bool loop::take(std::function<void()>& task) {
  if (!tasks_.empty()) {
    task = std::move(tasks_.front());
    tasks_.pop_front();
    return true;
  }
  if (timers_.empty() || timers_.begin()->first > now_locked()) return false;
  task = std::move(timers_.begin()->second);
  timers_.erase(timers_.begin());
  return true;
}

std::size_t loop::pump() {
  SHOAL_ASSERT(!with_thread_);
  std::size_t done = 0;
  for (std::function<void()> task;; ++done) {
    {
      std::lock_guard lock(mutex_);
      if (!take(task)) return done;
    }
    task();
  }
}

std::size_t loop::advance(std::chrono::nanoseconds time) {
  {
    std::lock_guard lock(mutex_);
    hand_moved_ += time;
  }
  return pump();
}

void loop::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (std::function<void()> task; take(task)) {
      lock.unlock();
      task();
      task = nullptr;  // what it holds goes without the lock held
      lock.lock();
    } else if (timers_.empty()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, timers_.begin()->first);
    }
  }
}

}  // namespace shoal::transport
