#include "storage/snapshot_writer.hpp"

#include <utility>

namespace shoal::storage {

namespace {

core::parts_written answer_to(const core::runner_snapshot& snapshot) {
  core::parts_written answer;
  answer.view = snapshot.view;
  answer.step = snapshot.step;
  return answer;
}

}  // namespace

snapshot_writer::snapshot_writer(checkpoint_folder folder)
  : folder_(std::move(folder)), thread_([this] { write_loop(); }) {}

void snapshot_writer::drop(generation& unwritten, const std::string& why) {
  auto answer = answer_to(unwritten.snapshot);
  answer.failure = why;
  unwritten.snapshot.blocks.clear();  // the memory goes before anyone is told
  unwritten.done(std::move(answer));
}

void snapshot_writer::submit(core::runner_snapshot snapshot, callback done) {
  std::optional<generation> dropped(generation{std::move(snapshot), std::move(done)});
  const auto step = dropped->snapshot.step;
  std::string why = "the checkpoint writer has stopped";
  {
    const std::scoped_lock guard(mutex_);
    if (!stopping_) {
      std::swap(dropped, waiting_);
      why = "the disk is slower than snapshots come: this one gave way to that of step " +
            std::to_string(step.value) +
            "; checkpoint less often (checkpoint.every) or to a faster disk";
    }
  }
  changed_.notify_all();
  if (dropped) drop(*dropped, why);
}

void snapshot_writer::complete(core::manifest m, std::function<void(result<void>)> done) {
  completion asked{std::move(m), std::move(done)};
  {
    const std::scoped_lock guard(mutex_);
    if (!stopping_) {
      completions_.push_back(std::move(asked));
      changed_.notify_all();
      return;
    }
  }
  asked.done({errc::halted, "the checkpoint writer has stopped"});
}

void snapshot_writer::stop() {
  std::optional<generation> dropped;
  std::deque<completion> unwritten;
  {
    const std::scoped_lock guard(mutex_);
    stopping_ = true;
    std::swap(dropped, waiting_);
    std::swap(unwritten, completions_);
  }
  changed_.notify_all();
  for (auto& one : unwritten)
    one.done({errc::halted, "the checkpoint writer was stopped before the manifest was written"});
  if (dropped) drop(*dropped, "the checkpoint writer was stopped before it was written");
  if (thread_.joinable()) thread_.join();
}

void snapshot_writer::write_loop() {
  for (;;) {
    std::optional<generation> next;
    std::optional<completion> whole;
    {
      std::unique_lock guard(mutex_);
      changed_.wait(guard, [this] { return waiting_ || !completions_.empty() || stopping_; });
      if (stopping_) return;
      if (completions_.empty()) {
        std::swap(next, waiting_);
      } else {
        whole = std::move(completions_.front());
        completions_.pop_front();
      }
    }
    if (whole) whole->done(folder_.write_manifest(whole->manifest));
    if (next) write(*next);
  }
}

void snapshot_writer::write(const generation& next) {
  auto answer = answer_to(next.snapshot);
  for (auto& block : next.snapshot.blocks) {
    {
      const std::scoped_lock guard(mutex_);
      if (stopping_) answer.failure = "the checkpoint writer was stopped while it was written";
    }
    if (!answer.failure.empty()) break;
    auto part = folder_.write_block(next.snapshot.step, block);
    if (part)
      answer.parts.push_back(*std::move(part));
    else
      answer.failure = part.error().text;
  }
  if (!answer.failure.empty()) answer.parts.clear();
  next.done(std::move(answer));
}

}  // namespace shoal::storage
