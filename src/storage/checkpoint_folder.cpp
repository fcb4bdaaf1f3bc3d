#include "storage/checkpoint_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>

#include "base/units.hpp"
#include "storage/durable_file.hpp"
#include "storage/hash.hpp"
#include "storage/manifest_codec.hpp"
#include "storage/safetensors.hpp"
#include "storage/strict_json.hpp"

namespace shoal::storage {

namespace {

constexpr const char* manifest_name = "manifest.json";
constexpr std::string_view step_prefix = "step-";
constexpr std::string_view block_prefix = "block-";
constexpr std::string_view block_suffix = ".safetensors";

/// Whether shoal wrote a file of this name: those that `remove` may delete.
bool is_ours(std::string_view name) {
  if (const auto mark = name.find(".tmp."); mark != std::string_view::npos)
    name = name.substr(0, mark);
  return name == manifest_name || (name.starts_with(block_prefix) && name.ends_with(block_suffix));
}

std::string_view as_text(const core::shared_bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data), bytes.size};
}

/// A file that a sound manifest promises but the disk has not is damage, not an odd disk.
error missing_is_damage(error e, std::int64_t kind) {
  if (kind == -ENOENT) e.code = errc::damaged;
  return e;
}

}  // namespace

std::string step_folder_name(step_id step) {
  auto digits = std::to_string(step.value);
  if (digits.size() < 8) digits.insert(0, 8 - digits.size(), '0');
  return std::string(step_prefix) + digits;
}

bool parse_step_folder_name(std::string_view name, step_id& found) {
  if (!name.starts_with(step_prefix)) return false;
  const auto digits = name.substr(step_prefix.size());
  const auto end = digits.data() + digits.size();
  const auto [stop, bad] = std::from_chars(digits.data(), end, found.value);
  return bad == std::errc() && stop == end && step_folder_name(found) == name;
}

std::string block_file_name(block_index block) {
  auto digits = std::to_string(block);
  if (digits.size() < 3) digits.insert(0, 3 - digits.size(), '0');
  return std::string(block_prefix) + digits + std::string(block_suffix);
}

std::string checkpoint_folder::folder_of(step_id step) const {
  return join(path_, step_folder_name(step));
}

result<void> checkpoint_folder::preflight(std::uint64_t bytes_needed) const {
  TRY_VOID(make_folders(*files_, path_));
  const auto probe = join(path_, "probe");
  TRY_VOID(write_durably(*files_, probe, "shoal was here\n"));
  if (const auto removed = files_->remove(probe); removed < 0 && removed != -ENOENT)
    return file_error("remove", probe, removed);
  const auto room = files_->free_bytes(path_);
  if (room < 0) return file_error("ask for the free space of", path_, room);
  if (static_cast<std::uint64_t>(room) < bytes_needed)
    return error{errc::no_space, "checkpoint folder " + path_ + ": " +
                                   text_of(byte_count{static_cast<std::uint64_t>(room)}) +
                                   " are free, the job's checkpoints take " +
                                   text_of(byte_count{bytes_needed}) +
                                   "; free space, keep fewer (checkpoint.keep_latest_k), or set "
                                   "checkpoint.folder to another disk"};
  return {};
}

result<core::checkpoint_part> checkpoint_folder::write_block(step_id step,
                                                             const core::block_state& state) const {
  if (const auto digest = parameter_digest(state); digest != state.digest)
    return error{errc::damaged, "block " + std::to_string(state.block) + " at step " +
                                  std::to_string(step.value) + " has parameters of digest " +
                                  hex_of(digest) + " in memory, not " + hex_of(state.digest) +
                                  ": it is not saved; test this machine's memory"};
  auto written = write_block_once(step, state);
  if (!written && written.error().code == errc::io) written = write_block_once(step, state);
  return written;
}

result<core::checkpoint_part> checkpoint_folder::write_block_once(
  step_id step, const core::block_state& state) const {
  TRY(const auto header, encode_header(state, step));
  core::checkpoint_part part{state.block, block_file_name(state.block), header.size(), 0,
                             state.digest};
  for (auto& tensor : state.tensors) part.bytes += tensor.bytes.size;

  TRY_VOID(make_folders(*files_, folder_of(step)));
  TRY(auto file, durable_file::create(*files_, join(folder_of(step), part.file), part.bytes));
  running_hash hash;
  auto add = [&](std::span<const std::byte> bytes) {
    hash.add(bytes);
    return file.append(bytes);
  };
  TRY_VOID(add(std::as_bytes(std::span(header))));
  for (auto& tensor : state.tensors) TRY_VOID(add(std::span(tensor.bytes.data, tensor.bytes.size)));
  TRY_VOID(file.commit());
  part.hash = hash.value();
  return part;
}

result<void> checkpoint_folder::check_files(const core::manifest& m) const {
  const auto folder = folder_of(m.step);
  for (auto& part : m.parts) {
    const auto path = join(folder, part.file);
    const auto opened = files_->open(path);
    if (opened < 0) return missing_is_damage(file_error("open", path, opened), opened);
    const auto size = files_->size(static_cast<file_system::handle>(opened));
    files_->close(static_cast<file_system::handle>(opened));
    if (size < 0) return file_error("ask for the size of", path, size);
    if (static_cast<std::uint64_t>(size) != part.bytes)
      return error{errc::damaged, path + ": is " + std::to_string(size) + " bytes long, not " +
                                    std::to_string(part.bytes) + " as its manifest says"};
  }
  return {};
}

result<void> checkpoint_folder::write_manifest(const core::manifest& m) const {
  TRY_VOID(core::check(m));
  if (auto here = check_files(m); !here)
    return in("the checkpoint of step " + std::to_string(m.step.value) +
                " is not complete (do all nodes see the same checkpoint.folder?)",
              std::move(here).error());
  // The folder's own name may have been made by another node, which need not have synced it yet.
  if (const auto synced = files_->sync_folder(path_); synced < 0)
    return file_error("make durable the names in", path_, synced);
  return write_durably(*files_, join(folder_of(m.step), manifest_name), encode_manifest(m));
}

result<std::vector<step_id>> checkpoint_folder::steps() const {
  std::vector<folder_entry> entries;
  const auto listed = files_->list(path_, entries);
  if (listed == -ENOENT) return std::vector<step_id>{};
  if (listed < 0) return file_error("list", path_, listed);
  std::vector<step_id> found;
  for (auto& entry : entries)
    if (step_id step; parse_step_folder_name(entry.name, step)) found.push_back(step);
  std::ranges::sort(found, std::ranges::greater{});
  return found;
}

result<checkpoint_folder::listing> checkpoint_folder::list(std::string_view job_text) const {
  TRY(const auto found, steps());
  listing all;
  for (auto step : found) {
    auto m = read_manifest(step);
    auto fits = m ? check_job(*m, job_text) : result<void>(m.error());
    if (fits) fits = check_files(*m);
    if (fits)
      all.usable.push_back(*std::move(m));
    else
      all.others.push_back({step, std::move(fits).error()});
  }
  return all;
}

result<core::manifest> checkpoint_folder::read_manifest(step_id step) const {
  const auto folder = folder_of(step);
  const auto kind = files_->kind(folder);
  if (kind < 0) return missing_is_damage(file_error("look at", folder, kind), kind);
  if (kind != static_cast<std::int64_t>(entry_kind::folder))
    return error{errc::damaged, folder + ": is no folder; links are not followed here"};
  const auto path = join(folder, manifest_name);
  const auto there = files_->kind(path);
  if (there == -ENOENT)
    return error{errc::damaged,
                 folder + ": has no " + manifest_name + ": a save that was not finished"};
  TRY(const auto bytes, read_whole(*files_, path, manifest_bytes_max));
  auto m = decode_manifest(as_text(bytes));
  if (!m) return in(path, std::move(m).error());
  if (m->step != step)
    return error{errc::damaged, path + ": is that of step " + std::to_string(m->step.value)};
  return m;
}

result<core::block_state> checkpoint_folder::load(const core::manifest& m,
                                                  block_index block) const {
  TRY_VOID(core::check(m));
  if (block >= m.parts.size())
    return error{errc::foreign, folder_of(m.step) + ": has " + std::to_string(m.parts.size()) +
                                  " blocks, so no block " + std::to_string(block)};
  const auto& part = m.parts[block];
  const auto path = join(folder_of(m.step), part.file);
  auto whole = read_whole(*files_, path, part.bytes);
  if (!whole) return missing_is_damage(std::move(whole).error(), files_->kind(path));
  auto wrong = [&](const std::string& what) { return error{errc::damaged, path + ": " + what}; };
  if (whole->size != part.bytes)
    return wrong("is " + std::to_string(whole->size) + " bytes long, not " +
                 std::to_string(part.bytes) + " as its manifest says");
  if (const auto hash = hash_of(std::span(whole->data, whole->size)); hash != part.hash)
    return wrong("its hash is " + hex_of(hash) + ", not " + hex_of(part.hash) +
                 " as its manifest says");
  auto decoded = decode_block(*whole);
  if (!decoded) return in(path, std::move(decoded).error());
  if (decoded->state.block != block || decoded->step != m.step)
    return wrong("holds block " + std::to_string(decoded->state.block) + " of step " +
                 std::to_string(decoded->step.value));
  if (decoded->state.digest != part.digest)
    return wrong("holds parameters of digest " + hex_of(decoded->state.digest) + ", not " +
                 hex_of(part.digest) + " as its manifest says");
  return std::move(decoded->state);
}

result<void> checkpoint_folder::remove(step_id step) const {
  const auto folder = folder_of(step);
  const auto kind = files_->kind(folder);
  if (kind == -ENOENT) return {};
  if (kind != static_cast<std::int64_t>(entry_kind::folder))
    return error{errc::damaged, folder + ": is no folder, so that nothing in it is deleted"};
  const auto manifest = join(folder, manifest_name);
  if (const auto removed = files_->remove(manifest); removed < 0 && removed != -ENOENT)
    return file_error("remove", manifest, removed);
  if (const auto synced = files_->sync_folder(folder); synced < 0)
    return file_error("make durable the names in", folder, synced);
  std::vector<folder_entry> entries;
  if (const auto listed = files_->list(folder, entries); listed < 0)
    return file_error("list", folder, listed);
  for (auto& entry : entries) {
    if (!is_ours(entry.name) || entry.kind == entry_kind::folder) continue;
    const auto path = join(folder, entry.name);
    if (const auto removed = files_->remove(path); removed < 0 && removed != -ENOENT)
      return file_error("remove", path, removed);
  }
  const auto removed = files_->remove_folder(folder);
  if (removed < 0 && removed != -ENOTEMPTY && removed != -EEXIST && removed != -ENOENT)
    return file_error("remove", folder, removed);
  if (const auto synced = files_->sync_folder(path_); synced < 0)
    return file_error("make durable the names in", path_, synced);
  return {};
}

result<std::vector<step_id>> checkpoint_folder::remove_unfinished_before(step_id step) const {
  TRY(const auto found, steps());
  std::vector<step_id> removed;
  for (auto old : found) {
    if (old >= step || files_->kind(join(folder_of(old), manifest_name)) != -ENOENT) continue;
    if (files_->kind(folder_of(old)) != static_cast<std::int64_t>(entry_kind::folder)) continue;
    TRY_VOID(remove(old));
    removed.push_back(old);
  }
  return removed;
}

result<std::size_t> checkpoint_folder::remove_stale() const {
  TRY(const auto found, steps());
  std::size_t removed = 0;
  if (files_->kind(path_) == -ENOENT) return removed;
  TRY(removed, remove_stale_files(*files_, path_));
  for (auto step : found) {
    if (files_->kind(folder_of(step)) != static_cast<std::int64_t>(entry_kind::folder)) continue;
    TRY(const auto here, remove_stale_files(*files_, folder_of(step)));
    removed += here;
  }
  return removed;
}

result<core::block_state> folder_store::load(step_id checkpoint, block_index block) {
  TRY(const auto m, folder_.read_manifest(checkpoint));
  TRY_VOID(check_job(m, job_text_));
  return folder_.load(m, block);
}

}  // namespace shoal::storage
