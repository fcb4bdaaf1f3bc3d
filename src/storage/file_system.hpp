#pragma once
// The calls of the kernel that storage makes, behind one door.
//
// The real one forwards them; the tests' one keeps files in memory, counts the calls, and crashes,
// runs full, tears a write or forgets what was not synced at any of them. Nothing is decided here:
// the order of the calls, which makes a file durable, is in durable_file.cpp.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace shoal::storage {

/// What a name in a folder stands for; a symbolic link is not followed.
enum class entry_kind : std::uint8_t { file, folder, link, other };

struct folder_entry {
  std::string name;
  entry_kind kind = entry_kind::other;
};

/// Every call returns a number that is not negative, or minus an errno. None follows a symbolic
/// link in the last part of a path that names a file. Thread-safe.
class file_system {
public:
  using handle = int;
  virtual ~file_system() = default;

  /// A new file to write, locked until it is closed so that `remove_stale` leaves it alone; -EEXIST
  /// when the name is taken. Returns a handle.
  virtual std::int64_t create(const std::string& path) = 0;
  /// Reserves the space of `bytes` bytes; the size becomes `bytes`.
  virtual std::int64_t allocate(handle file, std::uint64_t bytes) = 0;
  /// Appends; returns how many bytes, which may be fewer than asked.
  virtual std::int64_t write(handle file, std::span<const std::byte> bytes) = 0;
  /// The file's bytes and size are on the disk. Never to be tried again after a failure: the kernel
  /// marks the lost pages clean.
  virtual std::int64_t sync(handle file) = 0;
  virtual std::int64_t close(handle file) = 0;
  /// Replaces `to`, which may exist.
  virtual std::int64_t rename(const std::string& from, const std::string& to) = 0;
  /// The names in a folder are on the disk.
  virtual std::int64_t sync_folder(const std::string& path) = 0;
  /// Removes a file or a link.
  virtual std::int64_t remove(const std::string& path) = 0;
  /// Removes a file that nobody is writing; -EAGAIN when somebody is.
  virtual std::int64_t remove_stale(const std::string& path) = 0;
  virtual std::int64_t make_folder(const std::string& path) = 0;
  /// Removes an empty folder.
  virtual std::int64_t remove_folder(const std::string& path) = 0;

  /// Opens a file to read; -ELOOP for a symbolic link, -EINVAL for what is no plain file.
  virtual std::int64_t open(const std::string& path) = 0;
  virtual std::int64_t size(handle file) = 0;
  /// Reads on; returns how many bytes, 0 at the end.
  virtual std::int64_t read(handle file, std::span<std::byte> into) = 0;
  /// The names in a folder but "." and "..", in order of name.
  virtual std::int64_t list(const std::string& path, std::vector<folder_entry>& into) = 0;
  /// What a path stands for (an entry_kind).
  virtual std::int64_t kind(const std::string& path) = 0;
  /// Bytes that we may still write to the disk of `path`.
  virtual std::int64_t free_bytes(const std::string& path) = 0;
};

/// The kernel's. One for the process.
file_system& real_file_system();

/// The error for a failed call: "cannot `doing` `path`: the kernel's words; what to do".
/// `errc::no_space`, `no_permission`, `damaged` (a link where a file should be) or `io`.
error file_error(std::string_view doing, const std::string& path, std::int64_t negative_errno);

}  // namespace shoal::storage
