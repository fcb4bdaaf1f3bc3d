#pragma once
// What the CHECKPOINT WRITERS say: to the one of the lead's node, and that one to the SUPERVISOR.

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "base/strong_id.hpp"
#include "core/sender.hpp"

namespace shoal::core {

/// A file of a checkpoint, as its writer left it.
struct checkpoint_part {
  block_index block = 0;
  std::string file;  ///< name inside the checkpoint's folder
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;    ///< XXH3-64 of the whole file
  std::uint64_t digest = 0;  ///< of the block's parameters
  friend bool operator==(const checkpoint_part&, const checkpoint_part&) = default;
  static constexpr auto type_name = "shoal::checkpoint_part";
  static auto fields(auto& x) { return std::tie(x.block, x.file, x.bytes, x.hash, x.digest); }
};

/// CHECKPOINT WRITER to the lead's CHECKPOINT WRITER: my files of this step are durable.
struct parts_written {
  sender from;
  view_id view;
  step_id step;
  std::vector<checkpoint_part> parts;
  std::string failure;  ///< not empty: this generation is dropped, and why
  friend bool operator==(const parts_written&, const parts_written&) = default;
  static constexpr auto type_name = "shoal::parts_written";
  static auto fields(auto& x) { return std::tie(x.from, x.view, x.step, x.parts, x.failure); }
};

/// The lead's CHECKPOINT WRITER to SUPERVISOR: a checkpoint exists, or this generation was dropped.
struct checkpoint_done {
  sender from;
  step_id step;
  std::string failure;  ///< empty when it exists
  friend bool operator==(const checkpoint_done&, const checkpoint_done&) = default;
  static constexpr auto type_name = "shoal::checkpoint_done";
  static auto fields(auto& x) { return std::tie(x.from, x.step, x.failure); }
};

}  // namespace shoal::core
