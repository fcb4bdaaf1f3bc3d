#include "core/checkpoint/manifest.hpp"

#include <algorithm>
#include <unordered_set>

#include "base/assert.hpp"
#include "base/rng.hpp"

namespace shoal::core {

std::uint64_t model_digest(const std::vector<std::uint64_t>& block_digests) {
  return mix_key(block_digests);
}

namespace {

/// A name that stays inside its folder on every file system: no path, nothing hidden, no surprise.
bool is_plain(const std::string& name) {
  if (name.empty() || name.size() > 128 || name.front() == '.') return false;
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

}  // namespace

result<void> check(const manifest& m) {
  auto wrong = [&](const std::string& what) {
    return error{errc::damaged, "manifest of step " + std::to_string(m.step.value) + ": " + what};
  };
  if (m.version != 1)
    return wrong("has version " + std::to_string(m.version) + ", this program reads version 1");
  if (m.parts.empty() || m.parts.size() > block_count_max)
    return wrong("lists " + std::to_string(m.parts.size()) + " blocks, not 1 to " +
                 std::to_string(block_count_max));
  std::vector<std::uint64_t> digests;
  std::unordered_set<std::string> names;
  for (auto& part : m.parts) {
    if (part.block != digests.size())
      return wrong("names block " + std::to_string(part.block) + " where block " +
                   std::to_string(digests.size()) + " belongs");
    if (!is_plain(part.file) || !names.insert(part.file).second)
      return wrong("the file name of block " + std::to_string(part.block) +
                   " is not plain, or there twice");
    digests.push_back(part.digest);
  }
  if (model_digest(digests) != m.weights_digest)
    return wrong("the digest of the model is not that of its blocks");
  return {};
}

replica_index writer_of(block_index block, std::uint32_t replica_count) {
  SHOAL_ASSERT(replica_count > 0);
  return block % replica_count;
}

part_collector::part_collector(std::uint32_t block_count) : block_count_(block_count) {}

std::optional<std::vector<checkpoint_part>> part_collector::add(const parts_written& report) {
  if (report.step < newest_complete_) return std::nullopt;  // the same one may be written again
  auto found = std::ranges::find(open_, report.step, &generation::step);
  if (!report.failure.empty()) {  // the generation is dropped; a later report of it opens it again
    if (found != open_.end()) open_.erase(found);
    return std::nullopt;
  }
  if (found == open_.end()) {
    open_.push_back({report.step, std::vector<std::optional<checkpoint_part>>(block_count_)});
    std::ranges::sort(open_, {}, &generation::step);
    if (open_.size() > 2) open_.erase(open_.begin());
    found = std::ranges::find(open_, report.step, &generation::step);
    if (found == open_.end()) return std::nullopt;  // the oldest of three was this one
  }
  for (auto& part : report.parts)
    if (part.block < block_count_) found->parts[part.block] = part;
  if (!std::ranges::all_of(found->parts, [](auto& part) { return part.has_value(); }))
    return std::nullopt;
  std::vector<checkpoint_part> whole;
  for (auto& part : found->parts) whole.push_back(std::move(*part));
  newest_complete_ = report.step;
  std::erase_if(open_, [&](auto& g) { return g.step <= newest_complete_; });
  return whole;
}

std::vector<step_id> to_delete(std::vector<step_id> steps, std::uint32_t keep, step_id in_use) {
  if (keep == 0 || steps.size() <= keep) return {};
  std::ranges::sort(steps);
  steps.resize(steps.size() - keep);
  std::erase(steps, in_use);
  return steps;
}

}  // namespace shoal::core
