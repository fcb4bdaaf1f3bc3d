#include "storage/durable_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>
#include <utility>

namespace shoal::storage {

namespace {

constexpr std::string_view temporary_mark = ".tmp.";
constexpr int names_to_try = 100;
constexpr std::size_t write_bytes_max = 64u << 20;  // Linux moves at most 2 GiB a call

/// Unlike any other in this process; other processes differ in the pid, other hosts are told apart
/// by O_EXCL.
std::string temporary_name(const std::string& path) {
  static std::atomic<std::uint64_t> count = 0;
  return path + std::string(temporary_mark) + std::to_string(::getpid()) + "." +
         std::to_string(count.fetch_add(1));
}

}  // namespace

durable_file::durable_file(durable_file&& other) noexcept
  : files_(other.files_),
    path_(std::move(other.path_)),
    temporary_(std::exchange(other.temporary_, {})),
    file_(std::exchange(other.file_, -1)),
    left_(other.left_) {}

durable_file::~durable_file() {
  if (file_ >= 0) files_->close(file_);
  if (!temporary_.empty()) files_->remove(temporary_);
}

result<durable_file> durable_file::create(file_system& files, std::string path,
                                          std::uint64_t bytes) {
  durable_file made(files, std::move(path), bytes);
  std::int64_t opened = -EEXIST;
  std::string name;
  for (int i = 0; i < names_to_try && opened == -EEXIST; ++i) {
    name = temporary_name(made.path_);
    opened = files.create(name);
  }
  if (opened < 0) return file_error("create", name, opened);
  made.file_ = static_cast<file_system::handle>(opened);
  made.temporary_ = name;
  if (const auto reserved = files.allocate(made.file_, bytes); reserved < 0)
    return file_error("reserve " + std::to_string(bytes) + " bytes for", made.path_, reserved);
  return made;
}

result<void> durable_file::append(std::span<const std::byte> bytes) {
  SHOAL_ASSERT(file_ >= 0);
  SHOAL_ASSERT(bytes.size() <= left_);
  while (!bytes.empty()) {
    const auto written = files_->write(file_, bytes.first(std::min(bytes.size(), write_bytes_max)));
    if (written < 0) return file_error("write", path_, written);
    if (written == 0) return file_error("write", path_, -EIO);  // or we would spin
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    left_ -= static_cast<std::uint64_t>(written);
  }
  return {};
}

result<void> durable_file::commit() {
  SHOAL_ASSERT(file_ >= 0);
  SHOAL_ASSERT(left_ == 0);
  if (const auto synced = files_->sync(file_); synced < 0)
    return file_error("make durable", path_, synced);
  if (const auto closed = files_->close(std::exchange(file_, -1)); closed < 0)
    return file_error("close", path_, closed);
  if (const auto renamed = files_->rename(temporary_, path_); renamed < 0)
    return file_error("put in place", path_, renamed);
  temporary_.clear();
  const auto folder = folder_of(path_);
  if (const auto synced = files_->sync_folder(folder); synced < 0)
    return file_error("make durable the names in", folder, synced);
  return {};
}

result<void> write_durably(file_system& files, const std::string& path, std::string_view text) {
  TRY(auto file, durable_file::create(files, path, text.size()));
  TRY_VOID(file.append(std::as_bytes(std::span(text))));
  return file.commit();
}

result<core::shared_bytes> read_whole(file_system& files, const std::string& path,
                                      std::uint64_t bytes_max) {
  const auto opened = files.open(path);
  if (opened < 0) return file_error("open", path, opened);
  const auto file = static_cast<file_system::handle>(opened);
  struct closer {
    file_system& files;
    file_system::handle file;
    ~closer() { files.close(file); }
  } at_end{files, file};

  const auto size = files.size(file);
  if (size < 0) return file_error("ask for the size of", path, size);
  if (static_cast<std::uint64_t>(size) > bytes_max)
    return error{errc::damaged, path + ": is " + std::to_string(size) + " bytes long, at most " +
                                  std::to_string(bytes_max) + " can be right"};
  TRY(auto whole, allocate_bytes(static_cast<std::uint64_t>(size)));
  std::size_t done = 0;
  while (done < whole.size) {
    const auto got = files.read(file, std::span(whole.data, whole.size).subspan(done));
    if (got < 0) return file_error("read", path, got);
    if (got == 0)
      return error{errc::damaged, path + ": ended after " + std::to_string(done) + " of " +
                                    std::to_string(whole.size) + " bytes; is it being changed?"};
    done += static_cast<std::size_t>(got);
  }
  return whole;
}

bool is_temporary(std::string_view name) {
  return name.find(temporary_mark) != std::string_view::npos;
}

result<std::size_t> remove_stale_files(file_system& files, const std::string& folder) {
  std::vector<folder_entry> entries;
  if (const auto listed = files.list(folder, entries); listed < 0)
    return file_error("list", folder, listed);
  std::size_t removed = 0;
  for (auto& entry : entries) {
    if (entry.kind != entry_kind::file || !is_temporary(entry.name)) continue;
    const auto path = join(folder, entry.name);
    const auto gone = files.remove_stale(path);
    if (gone == -EAGAIN || gone == -ENOENT) continue;  // being written, or just finished
    if (gone < 0) return file_error("remove", path, gone);
    ++removed;
  }
  return removed;
}

result<void> make_folders(file_system& files, const std::string& path) {
  const auto what = files.kind(path);
  if (what == static_cast<std::int64_t>(entry_kind::folder)) return {};
  // A link to a folder is the user's choice, and listing follows it.
  std::vector<folder_entry> ignored;
  if (what >= 0 && files.list(path, ignored) >= 0) return {};
  if (what >= 0) return file_error("make the folder", path, -ENOTDIR);
  if (what != -ENOENT) return file_error("look at", path, what);
  const auto above = folder_of(path);
  if (above != path) TRY_VOID(make_folders(files, above));
  if (const auto made = files.make_folder(path); made < 0 && made != -EEXIST)
    return file_error("make the folder", path, made);
  if (const auto synced = files.sync_folder(above); synced < 0)
    return file_error("make durable the names in", above, synced);
  return {};
}

result<core::shared_bytes> allocate_bytes(std::uint64_t bytes) {
  constexpr std::align_val_t alignment{64};
  auto* data = static_cast<std::byte*>(::operator new(bytes, alignment, std::nothrow));
  if (!data)
    return error{errc::no_memory, "no memory for " + std::to_string(bytes) +
                                    " bytes of a checkpoint: give the node more of it"};
  return core::shared_bytes{
    data, bytes, std::shared_ptr<void>(data, [](void* p) { ::operator delete(p, alignment); })};
}

std::string join(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty() && path.back() != '/') path += '/';
  return path += name;
}

std::string folder_of(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(path.substr(0, slash == 0 ? 1 : slash));
}

}  // namespace shoal::storage
