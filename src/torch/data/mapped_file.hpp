#pragma once
// A file's bytes in memory, read-only, by mmap: opened at once whatever its size, and one copy for
// all processes of a machine.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/result.hpp"

namespace shoal::engine {

/// Usable from any thread. The file must not shrink while it is mapped: the system then ends the
/// process with SIGBUS.
class mapped_file {
public:
  /// `errc::data` when it is missing, empty or no regular file, `errc::no_permission`, `errc::io`.
  static result<std::unique_ptr<const mapped_file>> open(const std::string& path);

  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  ~mapped_file();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

private:
  mapped_file(std::string path, std::span<const std::byte> bytes)
    : path_(std::move(path)), bytes_(bytes) {}
  std::string path_;
  std::span<const std::byte> bytes_;
};

/// An error of the file system about `path`, from errno.
error file_error(int number, const std::string& path);

}  // namespace shoal::engine
