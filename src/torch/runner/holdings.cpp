#include "torch/runner/holdings.hpp"

#include <utility>

#include "base/assert.hpp"

namespace shoal::engine {

void holdings::drop_unfinished_sums() {
  if (!has_sums_) drop_sums();
}

void holdings::drop_sums() {
  has_sums_ = false;
  for (auto& [index, block] : blocks_) block.runtime->drop_sums();
}

void holdings::add(std::unique_ptr<block_runtime> block) {
  has_sums_ = false;
  auto digest = block->digest();
  auto index = block->index();
  blocks_[index] = {std::move(block), digest};
}

void holdings::replace(std::unique_ptr<block_runtime> copy) {
  auto& place = blocks_.at(copy->index()).runtime;
  if (place->total().defined()) copy->set_total(place->total());
  place = std::move(copy);
}

void holdings::drop(block_index block) { blocks_.erase(block); }

void holdings::keep_only(const core::block_runs& kept) {
  std::erase_if(blocks_, [&](auto& b) { return !kept.contains(b.first); });
}

void holdings::restart(step_id step) {
  blocks_.clear();
  has_sums_ = false;
  last_verdict_.reset();
  applied_ = step;
}

void holdings::apply(const core::verdict& word) {
  SHOAL_ASSERT(word.step == applied_.next());
  SHOAL_ASSERT(word.what == core::decision::apply || word.what == core::decision::skip);
  SHOAL_ASSERT(has_sums_ || blocks_.empty());
  if (word.what == core::decision::apply)
    for (auto& [index, block] : blocks_) {
      block.runtime->apply(word.step, word.learning_rate.value(), word.clip_factor.value());
      block.digest = block.runtime->digest();
    }
  drop_sums();
  applied_ = word.step;
  last_verdict_ = word;
}

std::vector<core::held_block> holdings::list() const {
  std::vector<core::held_block> all;
  for (auto& [index, block] : blocks_) all.push_back({index, block.digest});
  return all;
}

core::standing holdings::standing() const {
  core::standing now;
  now.applied = applied_;
  now.has_sums = has_sums_ && !blocks_.empty();
  now.last_verdict = last_verdict_;
  now.blocks = list();
  return now;
}

std::vector<core::block_state> holdings::copies(const std::vector<block_index>& blocks) const {
  std::vector<core::block_state> all;
  for (auto b : blocks) all.push_back(blocks_.at(b).runtime->copy_state());
  return all;
}

}  // namespace shoal::engine
