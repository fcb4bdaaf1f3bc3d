#pragma once
// The checkpoints of a job in a folder that all its nodes see.
//
//   FOLDER/step-00000120/block-000.safetensors   each by the node that holds the block
//                        block-001.safetensors
//                        manifest.json           written last: now the checkpoint exists
//
// Every file is written by the rules of durable_file.hpp. What is read is checked: the manifest by
// its checksum, a block by its size, its hash, the format's rules and the digest of its parameters.
// A damaged or unfinished checkpoint is passed over with a reason, and never deleted unasked.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/checkpoint/manifest.hpp"
#include "core/ports.hpp"
#include "storage/file_system.hpp"

namespace shoal::storage {

/// Reads and writes one such folder. Stateless but for its path, so that copies and other processes
/// may use it at the same time. Errors name the file and say what to do.
class checkpoint_folder {
public:
  /// `files` must outlive this.
  explicit checkpoint_folder(std::string path, file_system& files = real_file_system())
    : path_(std::move(path)), files_(&files) {}

  const std::string& path() const { return path_; }

  /// Before a job starts: makes the folder, writes, syncs, renames and removes a file in it, and
  /// looks for `bytes_needed` free bytes. `errc::no_permission`, `no_space`, `io`.
  result<void> preflight(std::uint64_t bytes_needed) const;

  /// Makes a block's file durable, and says what the manifest must know of it. After an I/O error
  /// it is tried once more, in another file. `errc::damaged` when `state.digest` is not that of its
  /// bytes.
  result<core::checkpoint_part> write_block(step_id step, const core::block_state& state) const;

  /// Makes the checkpoint exist, once all files of its parts are here in their sizes.
  result<void> write_manifest(const core::manifest& m) const;

  /// Why a checkpoint cannot be used.
  struct unusable {
    step_id step;
    error why;  ///< `errc::foreign`: of another job
  };
  struct listing {
    std::vector<core::manifest> usable;  ///< newest first
    std::vector<unusable> others;        ///< newest first
  };
  /// What is here for the job with the text `job_text`. Usable: the manifest is sound and ours, and
  /// its files exist in their sizes; their bytes are checked by `load`. A folder that does not
  /// exist yet has none. `errc::io`, `no_permission`.
  result<listing> list(std::string_view job_text) const;

  /// The manifest of one step. `errc::damaged`, `foreign`, `io`.
  result<core::manifest> read_manifest(step_id step) const;

  /// One block of a checkpoint, checked in full. `errc::damaged`, `foreign`, `io`.
  result<core::block_state> load(const core::manifest& m, block_index block) const;

  /// Deletes a checkpoint, whole or not: the manifest first, so that it ends to exist at once.
  /// Only files that shoal wrote; a folder with others in it stays.
  result<void> remove(step_id step) const;

  /// Deletes what unfinished saves older than `step` left behind: folders without a manifest.
  /// Returns their steps, to be told.
  result<std::vector<step_id>> remove_unfinished_before(step_id step) const;

  /// Deletes the temporary files of writers that are no more. At start. Returns how many.
  result<std::size_t> remove_stale() const;

private:
  std::string folder_of(step_id step) const;
  result<core::checkpoint_part> write_block_once(step_id step,
                                                 const core::block_state& state) const;
  result<void> check_files(const core::manifest& m) const;
  result<std::vector<step_id>> steps() const;  // newest first

  std::string path_;
  file_system* files_;
};

/// Blocks for the stage runner. Used from one thread.
class folder_store final : public core::block_store {
public:
  /// Checkpoints of another job than that of `job_text` are `errc::foreign`.
  folder_store(checkpoint_folder folder, std::string job_text)
    : folder_(std::move(folder)), job_text_(std::move(job_text)) {}

  result<core::block_state> load(step_id checkpoint, block_index block) override;

private:
  checkpoint_folder folder_;
  std::string job_text_;
};

/// "step-00000120"; and back, `false` for any other name.
std::string step_folder_name(step_id step);
bool parse_step_folder_name(std::string_view name, step_id& found);
/// "block-007.safetensors".
std::string block_file_name(block_index block);

}  // namespace shoal::storage
