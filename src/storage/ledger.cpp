#include "storage/ledger.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include "storage/durable_file.hpp"
#include "storage/file_system.hpp"
#include "storage/hash.hpp"
#include "storage/strict_json.hpp"

namespace shoal::storage {

namespace {

constexpr std::string_view state_key = "ledger/state";
constexpr std::string_view checkpoint_prefix = "checkpoint/";
constexpr std::string_view checkpoint_end = "checkpoint0";  // the first key after the prefix
constexpr std::uint32_t value_version = 1;
constexpr std::size_t head_bytes = sizeof(std::uint32_t) + sizeof(std::uint64_t);

constexpr std::size_t hex_digits = 16;

/// What ledger.sequence says: the number and its hash.
std::string sequence_text(std::uint64_t sequence) {
  const auto number = hex_of(sequence);
  return number + " " + hex_of(hash_of(number));
}

rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }

std::uint64_t checksum_of(std::string_view key, std::uint32_t version, std::string_view payload) {
  const std::uint64_t key_bytes = key.size();
  running_hash hash;
  hash.add(std::as_bytes(std::span(&key_bytes, 1)));
  hash.add(std::as_bytes(std::span(key)));
  hash.add(std::as_bytes(std::span(&version, 1)));
  hash.add(std::as_bytes(std::span(payload)));
  return hash.value();
}

std::string seal(std::string_view key, std::string_view payload) {
  const auto checksum = checksum_of(key, value_version, payload);
  std::string value(head_bytes, '\0');
  std::memcpy(value.data(), &value_version, sizeof value_version);
  std::memcpy(value.data() + sizeof value_version, &checksum, sizeof checksum);
  return value.append(payload);
}

result<std::string> unseal(std::string_view key, std::string_view value) {
  std::uint32_t version = 0;
  std::uint64_t checksum = 0;
  if (value.size() < head_bytes)
    return error{errc::damaged, "the value of " + std::string(key) + " is cut short"};
  std::memcpy(&version, value.data(), sizeof version);
  std::memcpy(&checksum, value.data() + sizeof version, sizeof checksum);
  const auto payload = value.substr(head_bytes);
  if (checksum != checksum_of(key, version, payload))
    return error{errc::damaged, "the value of " + std::string(key) + " fails its checksum"};
  if (version != value_version)
    return error{errc::foreign, "the value of " + std::string(key) + " is of version " +
                                  std::to_string(version) + "; this program reads version 1"};
  return std::string(payload);
}

std::string checkpoint_key(step_id step) {
  return std::string(checkpoint_prefix) + hex_of(step.value);
}

/// RocksDB 7.8 as Debian builds it asserts when its log of messages meets a full disk. What goes
/// wrong comes as a status anyway.
class silence final : public rocksdb::Logger {
public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

rocksdb::Options small_database() {
  rocksdb::Options options;
  options.info_log = std::make_shared<silence>();
  options.create_if_missing = true;
  // A supervisor may die in the middle of a write: an unfinished record at the very end of the log
  // is normal, and was never acknowledged. Damage before the end is not: point-in-time recovery
  // would drop the acknowledged records after it without a word, and a term would be used twice;
  // absolute consistency would refuse every log that was cut off by a power failure.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.track_and_verify_wals_in_manifest = true;
  options.paranoid_checks = true;
  options.use_fsync = false;  // fdatasync writes the size, too
  // Some kilobytes of data: as little memory, threads and files as it can do with.
  options.write_buffer_size = 1u << 20;
  options.max_write_buffer_number = 2;
  options.max_total_wal_size = 4u << 20;
  options.max_background_jobs = 1;
  options.max_open_files = 32;
  options.max_file_opening_threads = 1;
  options.compression = rocksdb::kNoCompression;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(1u << 20);
  table.checksum = rocksdb::kXXH3;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

rocksdb::WriteOptions durable() {
  rocksdb::WriteOptions options;
  options.sync = true;
  return options;
}

rocksdb::ReadOptions checked() {
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  return options;
}

}  // namespace

ledger::ledger(std::string folder, folder_lock lock)
  : folder_(std::move(folder)), lock_(std::move(lock)) {}

ledger::~ledger() = default;

result<std::unique_ptr<ledger>> ledger::open(const std::string& folder) {
  TRY_VOID(make_folders(real_file_system(), folder));
  TRY(auto lock, folder_lock::take(folder));
  std::unique_ptr<ledger> made(new ledger(folder, std::move(lock)));
  TRY_VOID(made->open_database());
  TRY_VOID(made->check_sequence());
  return made;
}

error ledger::explain(std::string_view doing, const rocksdb::Status& status) const {
  const auto text = status.ToString();
  auto say = [&](errc code, const char* what_to_do) {
    return error{code, "cannot " + std::string(doing) + " the ledger in " + folder_ + ": " + text +
                         "; " + what_to_do};
  };
  if (status.IsNoSpace() || text.find("No space left") != std::string::npos ||
      text.find("File too large") != std::string::npos)
    return say(errc::no_space, "free space on that disk");
  if (status.IsCorruption())
    return say(errc::damaged,
               "put the folder back from a copy, or move it away: the job then starts from its "
               "newest checkpoint");
  if (text.find("lock") != std::string::npos && text.find("LOCK") != std::string::npos)
    return say(errc::refused,
               "another supervisor runs there: stop it, or give this job another folder");
  if (text.find("ermission denied") != std::string::npos)
    return say(errc::no_permission, "give this user the right to write there");
  return say(errc::io, "look at the disk and at the kernel's log (dmesg)");
}

result<void> ledger::open_database() {
  database_.reset();  // frees RocksDB's own lock before it is taken again
  rocksdb::DB* opened = nullptr;
  const auto status = rocksdb::DB::Open(small_database(), folder_ + "/ledger", &opened);
  if (!status.ok()) return explain("open", status);
  database_.reset(opened);
  return {};
}

template <class Work>
result<void> ledger::run(std::string_view doing, Work work) {
  const std::scoped_lock guard(mutex_);
  rocksdb::Status status;
  if (database_) {
    status = work(*database_);
    if (status.ok()) return {};
  }
  TRY_VOID(open_database());
  status = work(*database_);
  if (status.ok()) return {};
  database_.reset();
  return explain(doing, status);
}

result<void> ledger::check_sequence() {
  std::optional<sequenced> newest;
  TRY_VOID(read_state(newest));
  sequence_ = newest ? newest->sequence : 0;
  if (real_file_system().kind(sequence_path()) == -ENOENT) return {};
  TRY(const auto bytes, read_whole(real_file_system(), sequence_path(), 2 * hex_digits + 1));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data), bytes.size);
  auto acknowledged = bits_of_hex(text.substr(0, hex_digits));
  if (!acknowledged || text != sequence_text(*acknowledged))
    return error{errc::damaged, sequence_path() +
                                  ": fails its check; remove it if the disk that "
                                  "holds it is sound otherwise"};
  if (*acknowledged <= sequence_) return {};
  return error{errc::damaged, "the ledger in " + folder_ + " went back to write " +
                                std::to_string(sequence_) + ", though write " +
                                std::to_string(*acknowledged) +
                                " was on the disk: its log is damaged; move the folder away, the "
                                "job then starts from its newest checkpoint"};
}

result<void> ledger::put_state(std::string_view payload) {
  const std::scoped_lock guard(state_mutex_);
  const auto sequence = ++sequence_;
  std::string numbered(sizeof sequence, '\0');
  std::memcpy(numbered.data(), &sequence, sizeof sequence);
  const auto value = seal(state_key, numbered.append(payload));
  TRY_VOID(run("write", [&](rocksdb::DB& database) {
    return database.Put(durable(), slice(state_key), value);
  }));
  return write_durably(real_file_system(), sequence_path(), sequence_text(sequence));
}

result<void> ledger::read_state(std::optional<sequenced>& newest) {
  std::string value;
  bool found = false;
  TRY_VOID(run("read", [&](rocksdb::DB& database) {
    const auto status = database.Get(checked(), slice(state_key), &value);
    found = status.ok();
    return status.IsNotFound() ? rocksdb::Status::OK() : status;
  }));
  newest.reset();
  if (!found) return {};
  auto payload = unseal(state_key, value);
  if (!payload) return in("ledger in " + folder_, std::move(payload).error());
  newest.emplace();
  if (payload->size() < sizeof newest->sequence)
    return error{errc::damaged, "ledger in " + folder_ + ": its state is cut short"};
  std::memcpy(&newest->sequence, payload->data(), sizeof newest->sequence);
  newest->payload = payload->substr(sizeof newest->sequence);
  return {};
}

result<std::optional<std::string>> ledger::get_state() {
  std::optional<sequenced> newest;
  TRY_VOID(read_state(newest));
  if (!newest) return std::optional<std::string>();
  return std::optional(std::move(newest->payload));
}

result<void> ledger::put_checkpoint(step_id step, std::string_view json) {
  const auto key = checkpoint_key(step);
  const auto value = seal(key, json);
  return run("write", [&](rocksdb::DB& database) { return database.Put(durable(), key, value); });
}

result<void> ledger::erase_checkpoint(step_id step) {
  const auto key = checkpoint_key(step);
  return run("write", [&](rocksdb::DB& database) { return database.Delete(durable(), key); });
}

result<std::vector<std::pair<step_id, std::string>>> ledger::checkpoints() {
  std::vector<std::pair<std::string, std::string>> rows;
  TRY_VOID(run("read", [&](rocksdb::DB& database) {
    rows.clear();
    const std::unique_ptr<rocksdb::Iterator> at(database.NewIterator(checked()));
    for (at->Seek(slice(checkpoint_prefix)); at->Valid(); at->Next()) {
      if (!at->key().starts_with(slice(checkpoint_prefix))) break;
      rows.emplace_back(at->key().ToString(), at->value().ToString());
    }
    return at->status();
  }));
  std::vector<std::pair<step_id, std::string>> found;
  for (auto& [key, value] : rows) {
    auto step = bits_of_hex(std::string_view(key).substr(checkpoint_prefix.size()));
    auto json = unseal(key, value);
    if (!step || !json)
      return in("ledger in " + folder_, step ? std::move(json).error() : std::move(step).error());
    found.emplace_back(step_id{*step}, *std::move(json));
  }
  return found;
}

result<void> ledger::rebuild(const std::vector<std::pair<step_id, std::string>>& found) {
  rocksdb::WriteBatch batch;
  if (const auto status = batch.DeleteRange(slice(checkpoint_prefix), slice(checkpoint_end));
      !status.ok())
    return explain("rebuild", status);
  for (auto& [step, json] : found) {
    const auto key = checkpoint_key(step);
    if (const auto status = batch.Put(key, seal(key, json)); !status.ok())
      return explain("rebuild", status);
  }
  return run("rebuild", [&](rocksdb::DB& database) { return database.Write(durable(), &batch); });
}

}  // namespace shoal::storage
