// `shoal digest`: reads a checkpoint in full, checks it, and shows what it holds.

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/commands.hpp"
#include "storage/checkpoint_folder.hpp"
#include "telemetry/words.hpp"

namespace shoal::app {

namespace {

namespace fs = std::filesystem;

struct place {
  std::string folder;  // of checkpoints
  step_id step;
};

// The newest checkpoint in `folder`, if it holds any.
std::optional<place> newest_in(const fs::path& folder) {
  std::optional<place> newest;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    step_id step;
    bool exists = storage::parse_step_folder_name(entry->path().filename().string(), step) &&
                  fs::exists(entry->path() / "manifest.json");
    if (exists && (!newest || newest->step < step)) newest = place{folder.string(), step};
  }
  return newest;
}

result<place> find_checkpoint(const std::string& text) {
  std::error_code failure;
  auto path = fs::canonical(text, failure);
  if (failure) return {errc::io, text + ": " + failure.message()};
  step_id step;
  if (storage::parse_step_folder_name(path.filename().string(), step))
    return place{path.parent_path().string(), step};
  for (const auto& folder : {path, path / "checkpoints"})
    if (auto found = newest_in(folder)) return *found;
  return {errc::checkpoint_unusable,
          text + ": there is no checkpoint here, nor in its folder \"checkpoints\""};
}

}  // namespace

result<void> digest(const digest_options& options) {
  TRY(auto where, find_checkpoint(options.path));
  storage::checkpoint_folder folder(where.folder);
  TRY(auto manifest, folder.read_manifest(where.step));
  auto blocks = nlohmann::ordered_json::array();
  for (const auto& part : manifest.parts) {
    TRY(auto state, folder.load(manifest, part.block));
    blocks.push_back(telemetry::hex_digest(state.digest));
  }
  auto whole = telemetry::hex_digest(manifest.weights_digest);
  auto path = where.folder + "/" + storage::step_folder_name(where.step);
  if (options.json) {
    nlohmann::ordered_json line{
      {"checkpoint", path}, {"step", where.step.value}, {"digest", whole}, {"blocks", blocks}};
    std::puts(line.dump().c_str());
    return {};
  }
  std::printf("%s  weights after step %llu, checked: %s\n", whole.c_str(),
              static_cast<unsigned long long>(where.step.value), path.c_str());
  for (std::size_t i = 0; i < blocks.size(); ++i)
    std::printf("%s  block %zu\n", blocks[i].get<std::string>().c_str(), i);
  return {};
}

}  // namespace shoal::app
