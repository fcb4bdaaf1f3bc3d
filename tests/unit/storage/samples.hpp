#pragma once
// Blocks, checkpoints and folders to test with.

#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "core/checkpoint/manifest.hpp"
#include "core/ports.hpp"
#include "storage/checkpoint_folder.hpp"
#include "storage/durable_file.hpp"
#include "storage/safetensors.hpp"

namespace shoal::test {

/// A tensor with bytes drawn from (seed, name).
inline core::state_tensor make_tensor(std::string name, std::vector<std::int64_t> shape,
                                      core::scalar_kind scalar, std::uint64_t seed) {
  std::uint64_t bytes = core::size_of(scalar);
  for (auto size : shape) bytes *= static_cast<std::uint64_t>(size);
  auto memory = *storage::allocate_bytes(bytes);
  const std::array words{seed};
  auto random = rng::of(words, name);
  for (std::size_t i = 0; i < bytes; ++i) memory.data[i] = static_cast<std::byte>(random.next());
  return {std::move(name), std::move(shape), scalar, std::move(memory)};
}

/// A small block as the engine has them: parameters, each with its optimizer state.
inline core::block_state make_block(block_index block, std::uint64_t seed) {
  using enum core::scalar_kind;
  const auto prefix = "h." + std::to_string(block) + ".";
  core::block_state state{block, 0, {}};
  for (auto* suffix : {"", ".exp_avg", ".exp_avg_sq"}) {
    state.tensors.push_back(make_tensor(prefix + "weight" + suffix, {3, 2}, f32, seed));
    state.tensors.push_back(make_tensor(prefix + "bias" + suffix, {5}, f32, seed));
  }
  state.digest = storage::parameter_digest(state);
  return state;
}

inline std::string bytes_of(const core::state_tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes.data), tensor.bytes.size};
}

/// Whether two blocks are the same to the bit.
inline bool same(const core::block_state& a, const core::block_state& b) {
  if (a.block != b.block || a.digest != b.digest || a.tensors.size() != b.tensors.size())
    return false;
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    auto &x = a.tensors[i], &y = b.tensors[i];
    if (x.name != y.name || x.shape != y.shape || x.scalar != y.scalar ||
        bytes_of(x) != bytes_of(y))
      return false;
  }
  return true;
}

/// The bytes of a block's file.
inline std::string file_of(const core::block_state& state, step_id step) {
  auto file = *storage::encode_header(state, step);
  for (auto& tensor : state.tensors) file += bytes_of(tensor);
  return file;
}

/// Text as the memory of a file that was read.
inline core::shared_bytes in_memory(std::string_view text) {
  auto memory = *storage::allocate_bytes(text.size());
  std::memcpy(memory.data, text.data(), text.size());
  return memory;
}

constexpr const char* job_text = "model.dim = 128\nmodel.kind = gpt2\ntraining.seed = 1\n";

/// Writes a checkpoint of `block_count` blocks made from (step, seed).
inline result<core::manifest> write_checkpoint(const storage::checkpoint_folder& folder,
                                               step_id step, block_index block_count,
                                               std::uint64_t seed) {
  core::manifest m;
  m.job_text = job_text;
  m.step = step;
  std::vector<std::uint64_t> digests;
  for (block_index block = 0; block < block_count; ++block) {
    TRY(auto part, folder.write_block(step, make_block(block, seed + step.value)));
    digests.push_back(part.digest);
    m.parts.push_back(std::move(part));
  }
  m.weights_digest = core::model_digest(digests);
  TRY_VOID(folder.write_manifest(m));
  return m;
}

/// A folder of the real file system that goes with this object.
class temporary_folder {
public:
  temporary_folder() {
    auto name = (std::filesystem::temp_directory_path() / "shoal-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

private:
  std::string path_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void write_text(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

}  // namespace shoal::test
