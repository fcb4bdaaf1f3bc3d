#pragma once
// A file that is whole or absent, whatever happens while it is written.
//
//   X.tmp.PID.N  create, reserve the space, write, sync, close      any failure: thrown away
//        |rename
//        v
//   X            sync the folder                                    now it is durable
//
// A failed sync is final: ext4, XFS and Btrfs mark the lost pages clean, so that a second sync
// would succeed with the data gone (Rebello et al., ATC'20). Whoever has the bytes writes them to
// another file.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/ports.hpp"
#include "storage/file_system.hpp"

namespace shoal::storage {

/// One file being written. `commit` gives it its name; without it nothing is left behind.
/// Errors name the path and say what to do: `errc::no_space`, `no_permission`, `io`; after one,
/// only destruction is allowed.
class durable_file {
public:
  /// Begins `path` with room for exactly `bytes` bytes. `files` must outlive this.
  static result<durable_file> create(file_system& files, std::string path, std::uint64_t bytes);

  durable_file(durable_file&& other) noexcept;
  durable_file& operator=(durable_file&&) = delete;
  ~durable_file();

  /// Writes on.
  result<void> append(std::span<const std::byte> bytes);
  /// All bytes are written: makes them durable under the file's name.
  result<void> commit();

private:
  durable_file(file_system& files, std::string path, std::uint64_t bytes)
    : files_(&files), path_(std::move(path)), left_(bytes) {}

  file_system* files_;
  std::string path_;
  std::string temporary_;  // empty once there is nothing to throw away
  file_system::handle file_ = -1;
  std::uint64_t left_;  // bytes still to come
};

/// A small file in one go.
result<void> write_durably(file_system& files, const std::string& path, std::string_view text);

/// The bytes of a file in memory of their own, aligned to 64. Refuses, before it reserves memory, a
/// file of more than `bytes_max` bytes (`errc::damaged`).
result<core::shared_bytes> read_whole(file_system& files, const std::string& path,
                                      std::uint64_t bytes_max);

/// Whether `name` is one of ours for a file that was never finished.
bool is_temporary(std::string_view name);

/// Removes what crashed writers left in `folder`, but not what one alive is writing. Returns how
/// many files.
result<std::size_t> remove_stale_files(file_system& files, const std::string& folder);

/// Makes `path` and the folders above it, each durable; fine when they exist.
result<void> make_folders(file_system& files, const std::string& path);

/// Memory aligned to 64 that lives as long as its last copy. `bytes` may be 0. `errc::no_memory`.
result<core::shared_bytes> allocate_bytes(std::uint64_t bytes);

/// "folder/name".
std::string join(std::string_view folder, std::string_view name);
/// The folder part of a path; "." when it has none.
std::string folder_of(std::string_view path);

}  // namespace shoal::storage
