#include "storage/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "storage/durable_file.hpp"

namespace shoal::storage {

namespace {

constexpr std::size_t owner_bytes_max = 128;

std::string host_name() {
  std::array<char, 65> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown host";
  return name.data();
}

/// What the holder wrote, cut to printable text.
std::string owner_in(int file) {
  std::array<char, owner_bytes_max> text{};
  const auto got = ::pread(file, text.data(), text.size(), 0);
  std::string owner;
  for (ssize_t i = 0; i < got && text[i] >= ' ' && text[i] <= '~'; ++i) owner += text[i];
  return owner.empty() ? "an unknown process" : owner;
}

}  // namespace

result<folder_lock> folder_lock::take(const std::string& folder) {
  const auto path = join(folder, "supervisor.lock");
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (file < 0) return file_error("open", path, -errno);
  folder_lock taken(file);
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return file_error("lock", path, -errno);
    return error{errc::refused, "another supervisor runs in " + folder + " (" + owner_in(file) +
                                  "): stop it, or give this job another folder"};
  }
  // Only for people: the lock holds whether or not this is written.
  const auto owner = "process " + std::to_string(::getpid()) + " on " + host_name() + "\n";
  if (::ftruncate(file, 0) != 0 ||
      ::pwrite(file, owner.data(), owner.size(), 0) != static_cast<ssize_t>(owner.size()))
    return file_error("write", path, -errno);
  return taken;
}

folder_lock::folder_lock(folder_lock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

folder_lock::~folder_lock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace shoal::storage
