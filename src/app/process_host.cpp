#include "app/process_host.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace shoal::app {

namespace {

int open_pidfd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

/// In the child, between fork and exec: only async-signal-safe calls.
[[noreturn]] void become(const char* program, char* const* arguments, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // the parent died before the line above
  ::setpgid(0, 0);  // the terminal's Ctrl-C goes to the parent alone, which asks us in its own time
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execv(program, arguments);
  ::_exit(127);
}

}  // namespace

process_host::process_host(on_exit listener) : listener_(std::move(listener)) {
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  SHOAL_ASSERT(wake_fd_ >= 0);
  reaper_ = std::thread([this] { reap_loop(); });
}

process_host::~process_host() {
  stop_all(false, std::chrono::milliseconds(0));
  closing_ = true;
  [[maybe_unused]] auto written = ::eventfd_write(wake_fd_, 1);
  reaper_.join();
  ::close(wake_fd_);
}

result<pid_t> process_host::start(const std::string& program,
                                  const std::vector<std::string>& arguments) {
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  // PDEATHSIG fires when the *thread* that forked ends, so children are started from the main
  // thread, which lives as long as the program.
  auto parent = ::getpid();
  std::lock_guard lock(mutex_);
  auto pid = ::fork();
  if (pid == 0) become(program.c_str(), argv.data(), parent);
  if (pid < 0) return {errc::io, "cannot start a node: fork: " + std::string(std::strerror(errno))};
  auto fd = open_pidfd(pid);
  if (fd < 0) {
    auto why = std::string(std::strerror(errno));
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return {errc::io, "cannot watch a node: pidfd_open: " + why};
  }
  children_[pid] = fd;
  order_.push_back(pid);
  [[maybe_unused]] auto written = ::eventfd_write(wake_fd_, 1);
  return pid;
}

bool process_host::signal(pid_t child, int number) {
  std::lock_guard lock(mutex_);
  auto found = children_.find(child);
  // Through the pidfd: the number may belong to somebody else by now.
  return found != children_.end() &&
         ::syscall(SYS_pidfd_send_signal, found->second, number, nullptr, 0) == 0;
}

std::vector<pid_t> process_host::children() const {
  std::lock_guard lock(mutex_);
  return order_;
}

void process_host::stop_all(bool gently, std::chrono::milliseconds grace) {
  auto deadline = std::chrono::steady_clock::now() + grace;
  if (gently)
    for (auto pid : children()) signal(pid, SIGTERM);
  while (!children().empty() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  for (auto pid : children()) signal(pid, SIGKILL);
  while (!children().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

void process_host::reap_loop() {
  while (!closing_) {
    std::vector<pollfd> fds{{wake_fd_, POLLIN, 0}};
    std::vector<pid_t> pids{0};
    {
      std::lock_guard lock(mutex_);
      for (auto [pid, fd] : children_) {
        fds.push_back({fd, POLLIN, 0});
        pids.push_back(pid);
      }
    }
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (fds[0].revents != 0) {
      eventfd_t ignored;
      ::eventfd_read(wake_fd_, &ignored);
    }
    for (std::size_t i = 1; i < fds.size(); ++i) {
      if (fds[i].revents == 0) continue;
      int status = 0;
      if (::waitpid(pids[i], &status, WNOHANG) != pids[i]) continue;
      {
        std::lock_guard lock(mutex_);
        ::close(fds[i].fd);
        children_.erase(pids[i]);
        std::erase(order_, pids[i]);
      }
      listener_(pids[i], WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
  }
}

}  // namespace shoal::app
