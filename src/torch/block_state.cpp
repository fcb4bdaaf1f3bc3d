// The half of block_runtime that deals in bytes: digest, and state that goes to other nodes and to
// disk.

#include <cstring>
#include <memory>
#include <utility>

#include <ATen/ATen.h>
#include <xxhash.h>

#include "torch/block_runtime.hpp"
#include "torch/optimizer.hpp"

namespace shoal::engine {

namespace {

core::shared_bytes bytes_of(const at::Tensor& t) {
  auto owner = std::make_shared<at::Tensor>(t);
  return {static_cast<std::byte*>(owner->data_ptr()), owner->nbytes(), owner};
}

std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (auto d : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(d);
  return text + "]";
}

}  // namespace

std::uint64_t block_runtime::digest() const {
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                 XXH3_freeState);
  XXH3_64bits_reset(state.get());
  for (auto& p : parameters_) XXH3_64bits_update(state.get(), p.const_data_ptr(), p.nbytes());
  return XXH3_64bits_digest(state.get());
}

std::vector<core::state_tensor> block_runtime::state_tensors() const {
  auto names = moment_names(job_->optimizer);
  std::vector<core::state_tensor> all;
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    auto& [name, shape, begin] = specs_[i];
    all.push_back({name, shape, core::scalar_kind::f32, bytes_of(parameters_[i])});
    for (std::size_t k = 0; k < moments_.size(); ++k)
      all.push_back({name + "." + std::string(names[k]), shape, core::scalar_kind::f32,
                     bytes_of(moments_[k][i])});
  }
  return all;
}

core::block_state block_runtime::share_state() const { return {index_, digest(), state_tensors()}; }

core::block_state block_runtime::copy_state() const {
  auto state = share_state();
  for (auto& t : state.tensors) {
    auto copy = bytes_of(at::empty(t.shape, at::kFloat));
    if (t.bytes.size != 0) std::memcpy(copy.data, t.bytes.data, t.bytes.size);
    t.bytes = std::move(copy);
  }
  return state;
}

result<void> block_runtime::load_state(const core::block_state& state) {
  auto foreign = [&](const std::string& what) {
    return error{errc::foreign, "the state of block " + std::to_string(state.block) +
                                  " is not that of \"" + description_->name() + "\" (block " +
                                  std::to_string(index_) + "): " + what +
                                  "; it belongs to another job or model"};
  };
  auto mine = state_tensors();
  if (state.block != index_) return foreign("the number differs");
  if (state.tensors.size() != mine.size())
    return foreign("it has " + std::to_string(state.tensors.size()) + " tensors, not " +
                   std::to_string(mine.size()));
  for (std::size_t i = 0; i < mine.size(); ++i) {
    auto& t = state.tensors[i];
    if (t.name != mine[i].name)
      return foreign("tensor " + std::to_string(i) + " is \"" + t.name + "\", not \"" +
                     mine[i].name + "\"");
    if (t.shape != mine[i].shape || t.scalar != mine[i].scalar ||
        t.bytes.size != mine[i].bytes.size)
      return foreign("\"" + t.name + "\" has shape " + text_of(t.shape) + " and " +
                     std::to_string(t.bytes.size) + " bytes, not " + text_of(mine[i].shape) +
                     " of float32");
  }
  // Only now: a foreign state must not leave this block half overwritten.
  for (std::size_t i = 0; i < mine.size(); ++i)
    if (mine[i].bytes.size != 0)
      std::memmove(mine[i].bytes.data, state.tensors[i].bytes.data, mine[i].bytes.size);
  return {};
}

std::uint64_t block_runtime::parameter_bytes() const {
  return static_cast<std::uint64_t>(offsets_.back()) * sizeof(float);
}

std::uint64_t block_runtime::state_bytes() const { return parameter_bytes() * moments_.size(); }

}  // namespace shoal::engine
