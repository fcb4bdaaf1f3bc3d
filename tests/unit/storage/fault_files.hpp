#pragma once
// A file system in memory that fails on demand: at the k-th call that changes anything it crashes,
// tears the call in half, or answers with an error; after a crash it forgets what was not synced.
//
// Two copies of everything: what the running system sees, and what the disk has. `sync` carries a
// file's bytes over, `sync_folder` a folder's names.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "storage/file_system.hpp"

namespace shoal::test {

enum class fault : std::uint8_t {
  crash,        ///< the call and all later ones do nothing and fail
  crash_after,  ///< the call is done, all later ones do nothing and fail
  crash_torn,   ///< a write does its first half, then as `crash`
  error,        ///< this call alone answers with `error_number`, and does nothing
  short_write,  ///< a write does its first half and says so; harmless
};

/// What the disk remembers after a crash.
enum class memory : std::uint8_t {
  all,     ///< the process died, the machine lives: everything
  synced,  ///< the power went: only what was synced
  some,    ///< the power went, but parts of the rest were on the disk already
};

class fault_files final : public storage::file_system {
public:
  fault_files();

  /// The `at`-th changing call from now (from 0) has this fault.
  void plan(std::uint64_t at, fault what, int error_number = 0);
  /// Every call of `name` fails with `error_number` from now on; 0 heals.
  void fail_always(std::string name, int error_number);
  /// Called at the start of every changing call with its name; may block, to play a slow disk.
  void before_calls(std::function<void(const std::string&)> watch) { watch_ = std::move(watch); }
  /// Bytes that the disk can hold.
  void set_capacity(std::uint64_t bytes) { capacity_ = bytes; }
  /// Changing calls so far; the names of them.
  std::uint64_t count() const { return calls_.size(); }
  const std::vector<std::string>& calls() const { return calls_; }
  bool crashed() const { return crashed_; }
  /// Comes up again after a crash.
  void restart(memory remembers, std::uint64_t seed = 0);

  /// All files with their contents, by path.
  std::map<std::string, std::string> contents() const;
  /// Puts bytes into a file, as rot would.
  void put(const std::string& path, std::string bytes);

  std::int64_t create(const std::string& path) override;
  std::int64_t allocate(handle file, std::uint64_t bytes) override;
  std::int64_t write(handle file, std::span<const std::byte> bytes) override;
  std::int64_t sync(handle file) override;
  std::int64_t close(handle file) override;
  std::int64_t rename(const std::string& from, const std::string& to) override;
  std::int64_t sync_folder(const std::string& path) override;
  std::int64_t remove(const std::string& path) override;
  std::int64_t remove_stale(const std::string& path) override;
  std::int64_t make_folder(const std::string& path) override;
  std::int64_t remove_folder(const std::string& path) override;
  std::int64_t open(const std::string& path) override;
  std::int64_t size(handle file) override;
  std::int64_t read(handle file, std::span<std::byte> into) override;
  std::int64_t list(const std::string& path, std::vector<storage::folder_entry>& into) override;
  std::int64_t kind(const std::string& path) override;
  std::int64_t free_bytes(const std::string& path) override;

private:
  struct node;
  using node_pointer = std::shared_ptr<node>;  // shared: names, handles and both copies point to it
  struct node {
    bool is_folder = false;
    std::string seen;  // bytes of a file
    std::string kept;
    std::map<std::string, node_pointer> seen_names;  // of a folder
    std::map<std::string, node_pointer> kept_names;
  };
  struct opened {
    node_pointer file;
    std::size_t at = 0;
    bool writes = false;
  };

  /// Counts a changing call; a negative number is its answer.
  std::int64_t enter(const char* name, bool& torn);
  std::int64_t enter(const char* name);
  node_pointer find(const std::string& path) const;
  node_pointer folder_of(const std::string& path) const;
  static std::string name_of(const std::string& path);
  std::uint64_t used() const;
  void forget(node& at, memory remembers, rng& random);

  node_pointer root_;
  std::map<handle, opened> handles_;
  handle next_handle_ = 3;
  std::vector<std::string> calls_;
  std::map<std::string, int> always_;
  std::function<void(const std::string&)> watch_;
  std::uint64_t capacity_ = UINT64_MAX;
  std::optional<std::uint64_t> fault_at_;
  fault fault_ = fault::crash;
  int error_number_ = 0;
  bool crashed_ = false;
  bool crash_next_ = false;
};

}  // namespace shoal::test
