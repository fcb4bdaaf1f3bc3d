#pragma once
// What a supervisor must not forget, in RocksDB: the ledger's state and the catalogue of
// checkpoints. Everything that was put is on the disk when `put_...` returns.
//
//   FOLDER/supervisor.lock    one supervisor a folder
//          ledger/            RocksDB:
//            "ledger/state"            head | sequence (8, LE) | the state's bytes
//            "checkpoint/" + 16 hex    head | the manifest's JSON
//            head: version (4, LE) | XXH3-64 of key, version and the rest (8, LE)
//          ledger.sequence    that of the last acknowledged state
//
// The checksum is ours, over RocksDB's own, and takes in the key: a value that ends up under
// another key is found. The sequence finds what RocksDB cannot: a damaged length in its log looks
// like the end of the log, and an older state would come up without a word. The catalogue can be
// rebuilt from the manifests on disk; the state cannot.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/strong_id.hpp"
#include "storage/folder_lock.hpp"

namespace rocksdb {
class DB;
class Status;
}  // namespace rocksdb

namespace shoal::storage {

/// The open ledger of a job; one a folder at a time. Thread-safe; calls block on the disk.
///
/// After any failure the database is closed and opened again, and the call is tried once more:
/// RocksDB 7.8 keeps failing after a full disk although space is free again (rocksdb#11643). When
/// that fails too, the next call tries to open it. Errors: `errc::no_space`, `no_permission`,
/// `io`; `damaged` for a database or value that fails its check.
class ledger {
public:
  /// Opens or makes the ledger in `folder`, which is made too, and checks its state.
  /// `errc::refused`: another supervisor runs there; `damaged`: the state is, or is not the last.
  static result<std::unique_ptr<ledger>> open(const std::string& folder);

  ledger(const ledger&) = delete;
  ledger& operator=(const ledger&) = delete;
  ~ledger();

  /// The state as it was put last; none in a new ledger.
  result<void> put_state(std::string_view payload);
  result<std::optional<std::string>> get_state();

  /// The catalogue, oldest first.
  result<void> put_checkpoint(step_id step, std::string_view json);
  result<void> erase_checkpoint(step_id step);
  result<std::vector<std::pair<step_id, std::string>>> checkpoints();
  /// Replaces the whole catalogue, all at once: from the manifests on disk.
  result<void> rebuild(const std::vector<std::pair<step_id, std::string>>& found);

private:
  ledger(std::string folder, folder_lock lock);

  result<void> open_database();
  struct sequenced {
    std::uint64_t sequence = 0;
    std::string payload;
  };
  result<void> read_state(std::optional<sequenced>& newest);
  result<void> check_sequence();
  std::string sequence_path() const { return folder_ + "/ledger.sequence"; }
  /// Calls `work` with the open database, as the class comment says.
  template <class Work>
  result<void> run(std::string_view doing, Work work);
  error explain(std::string_view doing, const rocksdb::Status& status) const;

  std::string folder_;
  folder_lock lock_;
  std::mutex mutex_;
  std::unique_ptr<rocksdb::DB> database_;  // none after a failure, until it opens again
  std::mutex state_mutex_;                 // orders whole calls of put_state
  std::uint64_t sequence_ = 0;             // of the last state put or tried
};

}  // namespace shoal::storage
