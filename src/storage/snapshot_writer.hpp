#pragma once
// Writes snapshots beside the training, on a thread of its own.
//
// One generation is being written and at most one waits. A disk that is slower than snapshots come
// loses the older waiting one: the newer is worth more, and memory for a third copy of the weights
// is not there. Training never waits for a disk.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "core/ports.hpp"
#include "storage/checkpoint_folder.hpp"

namespace shoal::storage {

class snapshot_writer {
public:
  /// What became of a generation; called exactly once for each. `from` is for the node to fill in.
  /// Comes from the writer's thread, or from within `submit` or `stop` for a generation that is
  /// dropped unwritten. Must return at once and not call the writer.
  using callback = std::function<void(core::parts_written)>;

  explicit snapshot_writer(checkpoint_folder folder);
  ~snapshot_writer() { stop(); }
  snapshot_writer(const snapshot_writer&) = delete;
  snapshot_writer& operator=(const snapshot_writer&) = delete;

  /// Takes the snapshot over and returns at once. After `stop` it is dropped.
  void submit(core::runner_snapshot snapshot, callback done);

  /// Completes a checkpoint: writes its manifest, before any generation that waits. Returns at
  /// once; `done` is called exactly once, as a `callback` is.
  void complete(core::manifest m, std::function<void(result<void>)> done);

  /// Finishes the block that is being written, drops the rest and ends the thread. May be called
  /// again.
  void stop();

private:
  struct generation {
    core::runner_snapshot snapshot;
    callback done;
  };
  struct completion {
    core::manifest manifest;
    std::function<void(result<void>)> done;
  };
  void write_loop();
  void write(const generation& next);
  static void drop(generation& unwritten, const std::string& why);

  const checkpoint_folder folder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<generation> waiting_;
  std::deque<completion> completions_;  // a few: one for each generation whose parts are whole
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace shoal::storage
