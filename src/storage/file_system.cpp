#include "storage/file_system.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace shoal::storage {

namespace {

std::int64_t or_errno(std::int64_t returned) { return returned < 0 ? -errno : returned; }

/// Calls again while a signal interrupts.
template <class Call>
std::int64_t persist(Call call) {
  for (;;)
    if (const std::int64_t returned = or_errno(call()); returned != -EINTR) return returned;
}

entry_kind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return entry_kind::file;
  if (S_ISDIR(mode)) return entry_kind::folder;
  return S_ISLNK(mode) ? entry_kind::link : entry_kind::other;
}

class kernel final : public file_system {
public:
  std::int64_t create(const std::string& path) override {
    const auto file = persist([&] {
      return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    });
    if (file < 0) return file;
    // A cleaner may have come between the two calls: then the file has no name any more.
    struct stat what {};
    if (::flock(static_cast<int>(file), LOCK_EX | LOCK_NB) != 0 ||
        ::fstat(static_cast<int>(file), &what) != 0 || what.st_nlink == 0) {
      ::close(static_cast<int>(file));
      return -EEXIST;
    }
    return file;
  }

  std::int64_t allocate(handle file, std::uint64_t bytes) override {
    if (bytes == 0) return 0;
    for (;;) {
      const int number = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));  // not in errno
      if (number != EINTR) return -number;
    }
  }

  std::int64_t write(handle file, std::span<const std::byte> bytes) override {
    return persist([&] { return ::write(file, bytes.data(), bytes.size()); });
  }

  std::int64_t sync(handle file) override {
    return or_errno(::fdatasync(file));  // not again, whatever the reason
  }

  std::int64_t close(handle file) override {
    // Linux has closed it even when it says EINTR.
    const auto closed = or_errno(::close(file));
    return closed == -EINTR ? 0 : closed;
  }

  std::int64_t rename(const std::string& from, const std::string& to) override {
    return or_errno(::rename(from.c_str(), to.c_str()));
  }

  std::int64_t sync_folder(const std::string& path) override {
    const auto folder =
      persist([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (folder < 0) return folder;
    const auto synced = or_errno(::fsync(static_cast<int>(folder)));
    ::close(static_cast<int>(folder));
    return synced;
  }

  std::int64_t remove(const std::string& path) override { return or_errno(::unlink(path.c_str())); }

  std::int64_t remove_stale(const std::string& path) override {
    const auto file = open(path);
    if (file < 0) return file;
    auto removed = or_errno(::flock(static_cast<int>(file), LOCK_EX | LOCK_NB));
    if (removed == -EWOULDBLOCK) removed = -EAGAIN;
    if (removed == 0) removed = remove(path);
    ::close(static_cast<int>(file));
    return removed;
  }

  std::int64_t make_folder(const std::string& path) override {
    return or_errno(::mkdir(path.c_str(), 0755));
  }

  std::int64_t remove_folder(const std::string& path) override {
    return or_errno(::rmdir(path.c_str()));
  }

  std::int64_t open(const std::string& path) override {
    // O_NONBLOCK: a pipe in the place of a file must not stop us; it is refused below.
    const auto file =
      persist([&] { return ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK); });
    if (file < 0) return file;
    struct stat what {};
    if (::fstat(static_cast<int>(file), &what) == 0 && S_ISREG(what.st_mode)) return file;
    ::close(static_cast<int>(file));
    return -EINVAL;
  }

  std::int64_t size(handle file) override {
    struct stat what {};
    return ::fstat(file, &what) != 0 ? -errno : what.st_size;
  }

  std::int64_t read(handle file, std::span<std::byte> into) override {
    return persist([&] { return ::read(file, into.data(), into.size()); });
  }

  std::int64_t list(const std::string& path, std::vector<folder_entry>& into) override {
    into.clear();
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
    if (!folder) return -errno;
    for (;;) {
      errno = 0;
      const dirent* found = ::readdir(folder.get());
      if (!found) break;
      const std::string name = found->d_name;
      if (name == "." || name == "..") continue;
      struct stat what {};
      if (::fstatat(::dirfd(folder.get()), name.c_str(), &what, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) continue;  // removed while we look
        return -errno;
      }
      into.push_back({name, kind_of(what.st_mode)});
    }
    if (errno != 0) return -errno;
    std::ranges::sort(into, {}, &folder_entry::name);
    return 0;
  }

  std::int64_t kind(const std::string& path) override {
    struct stat what {};
    if (::lstat(path.c_str(), &what) != 0) return -errno;
    return static_cast<std::int64_t>(kind_of(what.st_mode));
  }

  std::int64_t free_bytes(const std::string& path) override {
    struct statvfs what {};
    if (::statvfs(path.c_str(), &what) != 0) return -errno;
    return static_cast<std::int64_t>(what.f_bavail * what.f_frsize);
  }
};

}  // namespace

file_system& real_file_system() {
  static kernel one;
  return one;
}

error file_error(std::string_view doing, const std::string& path, std::int64_t negative_errno) {
  const int number = static_cast<int>(-negative_errno);
  auto say = [&](errc code, std::string_view what_to_do) {
    return error{code, "cannot " + std::string(doing) + " " + path + ": " + std::strerror(number) +
                         "; " + std::string(what_to_do)};
  };
  switch (number) {
    case ENOSPC:
      return say(errc::no_space, "free space on that disk or choose another folder");
    case EDQUOT:
      return say(errc::no_space, "your quota is used up: free space or choose another folder");
    case EFBIG:
      return say(errc::no_space, "the limit on file sizes (ulimit -f, or the disk's) is too low");
    case EACCES:
    case EPERM:
      return say(errc::no_permission, "give this user the right to, or choose another folder");
    case EROFS:
      return say(errc::no_permission, "the disk is read-only: choose another folder");
    case ENOTDIR:
      return say(errc::no_permission, "a file stands where a folder should: move it away");
    case ELOOP:
      return say(errc::damaged, "symbolic links are not followed here: put the file itself there");
    case ENOENT:
      return say(errc::io, "it is not there: check the path, and that the disk is mounted");
    case EMFILE:
    case ENFILE:
      return say(errc::io, "too many files are open: raise the limit (ulimit -n)");
    case ESTALE:
      return say(errc::io, "the network disk lost it: mount it again");
    default:
      return say(errc::io, "look at the disk and at the kernel's log (dmesg)");
  }
}

}  // namespace shoal::storage
