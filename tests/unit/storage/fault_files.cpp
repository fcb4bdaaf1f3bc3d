#include "unit/storage/fault_files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "storage/durable_file.hpp"

namespace shoal::test {

using storage::entry_kind;

fault_files::fault_files() : root_(std::make_shared<node>()) { root_->is_folder = true; }

void fault_files::plan(std::uint64_t at, fault what, int error_number) {
  fault_at_ = count() + at;
  fault_ = what;
  error_number_ = error_number;
}

void fault_files::fail_always(std::string name, int error_number) {
  always_[std::move(name)] = error_number;
}

std::int64_t fault_files::enter(const char* name, bool& torn) {
  torn = false;
  if (watch_) watch_(name);
  if (crash_next_) crashed_ = true;
  if (crashed_) return -EIO;
  const auto number = count();
  calls_.emplace_back(name);
  if (const auto found = always_.find(name); found != always_.end() && found->second != 0)
    return -found->second;
  if (fault_at_ != number) return 0;
  switch (fault_) {
    case fault::crash:
      crashed_ = true;
      return -EIO;
    case fault::crash_after:
      crash_next_ = true;
      return 0;
    case fault::crash_torn:
      crash_next_ = true;
      torn = true;
      return 0;
    case fault::error:
      return -error_number_;
    case fault::short_write:
      torn = true;
      return 0;
  }
  return 0;
}

std::int64_t fault_files::enter(const char* name) {
  bool torn = false;
  const auto answer = enter(name, torn);
  // Only writes can be torn; another call is not done at all.
  if (answer == 0 && torn && fault_ == fault::crash_torn) return crashed_ = true, -EIO;
  return answer;
}

fault_files::node_pointer fault_files::find(const std::string& path) const {
  auto at = root_;
  std::size_t begin = 0;
  while (at && begin < path.size()) {
    const auto end = std::min(path.find('/', begin), path.size());
    const auto part = path.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    const auto found = at->seen_names.find(part);
    at = found == at->seen_names.end() ? nullptr : found->second;
  }
  return at;
}

fault_files::node_pointer fault_files::folder_of(const std::string& path) const {
  auto folder = find(storage::folder_of(path));
  return folder && folder->is_folder ? folder : nullptr;
}

std::string fault_files::name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::uint64_t fault_files::used() const {
  std::uint64_t sum = 0;
  for (auto& [path, bytes] : contents()) sum += bytes.size();
  return sum;
}

std::map<std::string, std::string> fault_files::contents() const {
  std::map<std::string, std::string> all;
  const std::function<void(const node&, const std::string&)> visit = [&](const node& at,
                                                                         const std::string& path) {
    for (auto& [name, child] : at.seen_names) {
      if (child->is_folder)
        visit(*child, path + name + "/");
      else
        all[path + name] = child->seen;
    }
  };
  visit(*root_, "/");
  return all;
}

void fault_files::put(const std::string& path, std::string bytes) {
  auto& file = folder_of(path)->seen_names[name_of(path)];
  file = std::make_shared<node>();
  file->seen = file->kept = std::move(bytes);
}

void fault_files::restart(memory remembers, std::uint64_t seed) {
  handles_.clear();
  fault_at_.reset();
  crashed_ = crash_next_ = false;
  const std::array<std::uint64_t, 1> words{seed};
  auto random = rng::of(words, "restart");
  if (remembers != memory::all) forget(*root_, remembers, random);
}

void fault_files::forget(node& at, memory remembers, rng& random) {
  auto lucky = [&] { return remembers == memory::some && random.below(2) == 1; };
  if (!at.is_folder) {
    if (at.seen == at.kept) return;
    if (!lucky()) {
      at.seen = at.kept;
    } else if (!at.seen.empty()) {  // a piece of it never came
      const auto begin = random.below(at.seen.size());
      const auto size = random.below(at.seen.size() - begin) + 1;
      std::fill_n(at.seen.begin() + static_cast<std::ptrdiff_t>(begin), size, '\0');
    }
    at.kept = at.seen;
    return;
  }
  // A name that was replaced is the old one or the new one; one that came or went may have or not.
  std::map<std::string, node_pointer> names;
  for (auto& [name, child] : at.kept_names) {
    const auto seen = at.seen_names.find(name);
    if (seen == at.seen_names.end()) {
      if (!lucky()) names[name] = child;
    } else {
      names[name] = lucky() ? seen->second : child;
    }
  }
  for (auto& [name, child] : at.seen_names)
    if (!at.kept_names.contains(name) && lucky()) names[name] = child;
  at.seen_names = at.kept_names = std::move(names);
  for (auto& [name, child] : at.seen_names) forget(*child, remembers, random);
}

std::int64_t fault_files::create(const std::string& path) {
  if (const auto no = enter("create"); no < 0) return no;
  const auto folder = folder_of(path);
  if (!folder) return -ENOENT;
  if (folder->seen_names.contains(name_of(path))) return -EEXIST;
  const auto file = folder->seen_names[name_of(path)] = std::make_shared<node>();
  handles_[next_handle_] = {file, 0, true};
  return next_handle_++;
}

std::int64_t fault_files::allocate(handle file, std::uint64_t bytes) {
  if (const auto no = enter("allocate"); no < 0) return no;
  auto& seen = handles_.at(file).file->seen;
  if (used() - seen.size() + bytes > capacity_) return -ENOSPC;
  seen.resize(bytes);
  return 0;
}

std::int64_t fault_files::write(handle file, std::span<const std::byte> bytes) {
  bool torn = false;
  if (const auto no = enter("write", torn); no < 0) return no;
  if (torn) bytes = bytes.first((bytes.size() + 1) / 2);
  auto& to = handles_.at(file);
  auto& seen = to.file->seen;
  const auto end = to.at + bytes.size();
  if (end > seen.size()) {
    if (used() - seen.size() + end > capacity_) return -ENOSPC;
    seen.resize(end);
  }
  std::memcpy(seen.data() + to.at, bytes.data(), bytes.size());
  to.at = end;
  if (torn && fault_ == fault::crash_torn) return -EIO;
  return static_cast<std::int64_t>(bytes.size());
}

std::int64_t fault_files::sync(handle file) {
  if (const auto no = enter("sync"); no < 0) {
    // As Linux does: what could not be written counts as clean, and is gone.
    if (auto& at = *handles_.at(file).file; !crashed_) at.seen = at.kept;
    return no;
  }
  auto& at = *handles_.at(file).file;
  at.kept = at.seen;
  return 0;
}

std::int64_t fault_files::close(handle file) {
  const auto found = handles_.find(file);
  if (found == handles_.end()) return -EBADF;
  const bool writes = found->second.writes;
  handles_.erase(found);
  return writes ? enter("close") : 0;
}

std::int64_t fault_files::rename(const std::string& from, const std::string& to) {
  if (const auto no = enter("rename"); no < 0) return no;
  const auto source = folder_of(from);
  const auto target = folder_of(to);
  if (!source || !target || !source->seen_names.contains(name_of(from))) return -ENOENT;
  target->seen_names[name_of(to)] = source->seen_names[name_of(from)];
  source->seen_names.erase(name_of(from));
  return 0;
}

std::int64_t fault_files::sync_folder(const std::string& path) {
  if (const auto no = enter("sync_folder"); no < 0) return no;
  const auto folder = find(path);
  if (!folder || !folder->is_folder) return -ENOENT;
  folder->kept_names = folder->seen_names;
  return 0;
}

std::int64_t fault_files::remove(const std::string& path) {
  if (const auto no = enter("remove"); no < 0) return no;
  const auto folder = folder_of(path);
  const auto found = find(path);
  if (!folder || !found) return -ENOENT;
  if (found->is_folder) return -EISDIR;
  folder->seen_names.erase(name_of(path));
  return 0;
}

std::int64_t fault_files::remove_stale(const std::string& path) {
  const auto found = find(path);
  for (auto& [number, at] : handles_)
    if (at.file == found && at.writes) return -EAGAIN;
  return remove(path);
}

std::int64_t fault_files::make_folder(const std::string& path) {
  if (const auto no = enter("make_folder"); no < 0) return no;
  const auto folder = folder_of(path);
  if (!folder) return -ENOENT;
  auto& made = folder->seen_names[name_of(path)];
  if (made) return -EEXIST;
  made = std::make_shared<node>();
  made->is_folder = true;
  return 0;
}

std::int64_t fault_files::remove_folder(const std::string& path) {
  if (const auto no = enter("remove_folder"); no < 0) return no;
  const auto found = find(path);
  if (!found) return -ENOENT;
  if (!found->is_folder) return -ENOTDIR;
  if (!found->seen_names.empty()) return -ENOTEMPTY;
  folder_of(path)->seen_names.erase(name_of(path));
  return 0;
}

std::int64_t fault_files::open(const std::string& path) {
  if (crashed_) return -EIO;
  const auto found = find(path);
  if (!found) return -ENOENT;
  if (found->is_folder) return -EINVAL;
  handles_[next_handle_] = {found, 0, false};
  return next_handle_++;
}

std::int64_t fault_files::size(handle file) {
  return static_cast<std::int64_t>(handles_.at(file).file->seen.size());
}

std::int64_t fault_files::read(handle file, std::span<std::byte> into) {
  if (const auto found = always_.find("read"); found != always_.end() && found->second != 0)
    return -found->second;
  auto& from = handles_.at(file);
  const auto size = std::min(into.size(), from.file->seen.size() - from.at);
  std::memcpy(into.data(), from.file->seen.data() + from.at, size);
  from.at += size;
  return static_cast<std::int64_t>(size);
}

std::int64_t fault_files::list(const std::string& path, std::vector<storage::folder_entry>& into) {
  into.clear();
  const auto found = find(path);
  if (!found) return -ENOENT;
  if (!found->is_folder) return -ENOTDIR;
  for (auto& [name, child] : found->seen_names)
    into.push_back({name, child->is_folder ? entry_kind::folder : entry_kind::file});
  return 0;
}

std::int64_t fault_files::kind(const std::string& path) {
  const auto found = find(path);
  if (!found) return -ENOENT;
  return static_cast<std::int64_t>(found->is_folder ? entry_kind::folder : entry_kind::file);
}

std::int64_t fault_files::free_bytes(const std::string&) {
  return static_cast<std::int64_t>(
    std::min<std::uint64_t>(capacity_ - std::min(capacity_, used()), INT64_MAX));
}

}  // namespace shoal::test
