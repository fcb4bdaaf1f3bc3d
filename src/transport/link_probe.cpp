#include "transport/link_probe.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>

#include "transport/tcp_plane.hpp"

namespace shoal::transport {

namespace {

using clock = std::chrono::steady_clock;

core::shared_bytes room(std::uint64_t bytes) {
  auto memory = std::make_shared<std::vector<std::byte>>(bytes);
  return {memory->data(), memory->size(), memory};
}

/// One end: notes when a frame arrived.
class end_point final : public core::tensor_sink {
public:
  core::admission admit(node_id, const core::frame_header& header) override {
    std::lock_guard lock(mutex_);
    if (!into_.owner || into_.size != header.bytes) into_ = room(header.bytes);
    return {.what = core::admission::kind::take, .into = into_, .reason = {}};
  }
  void arrived(node_id, const core::frame_header&, core::shared_bytes) override {
    auto now = clock::now();
    std::lock_guard lock(mutex_);
    arrived_ = now;
    changed_.notify_all();
  }
  void broken(node_id, error why) override {
    std::lock_guard lock(mutex_);
    broken_ = std::move(why);
    changed_.notify_all();
  }
  void opened(view_id) override {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

  result<void> wait_open(clock::time_point until) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, until, [&] { return open_ || broken_; });
    if (broken_) return *broken_;
    if (!open_) return {errc::timeout, "two ends of a loopback link did not connect in time"};
    return {};
  }

  /// When the frame arrived; forgets it.
  result<clock::time_point> wait_frame(clock::time_point until) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, until, [&] { return arrived_ || broken_; });
    if (broken_) return *broken_;
    if (!arrived_) return {errc::timeout, "a frame over loopback did not arrive in time"};
    return *std::exchange(arrived_, std::nullopt);
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  core::shared_bytes into_;
  std::optional<clock::time_point> arrived_;
  std::optional<error> broken_;
  bool open_ = false;
};

/// Two planes with a view of two nodes.
class pair_of_planes {
public:
  static constexpr view_id view{1};

  result<void> connect(const core::emulate_options& emulate, std::chrono::nanoseconds deadline) {
    for (int i : {0, 1}) {
      tcp_options options;
      options.emulate = emulate;
      TRY(planes_[i], make_tcp_plane(std::move(options)));
      planes_[i]->attach(ends_[i]);
    }
    for (int i : {0, 1})
      planes_[i]->open(view, id(i), {{id(1 - i), {"127.0.0.1", 0, planes_[1 - i]->port()}}},
                       deadline);
    for (auto& end : ends_) TRY_VOID(end.wait_open(clock::now() + deadline));
    return {};
  }

  /// Seconds from the first node to the second.
  result<double> send(std::uint64_t bytes, std::uint32_t number,
                      std::chrono::nanoseconds deadline) {
    core::frame_header header{.view = view,
                              .step = {1},
                              .kind = core::frame_kind::activation,
                              .micro_batch = number,
                              .scalar = core::scalar_kind::u8,
                              .shape = {static_cast<std::int64_t>(bytes)},
                              .bytes = bytes};
    if (!payload_.owner || payload_.size != bytes) payload_ = room(bytes);
    auto begin = clock::now();
    planes_[0]->send({2}, std::move(header), payload_);
    TRY(auto end, ends_[1].wait_frame(begin + deadline));
    return std::chrono::duration<double>(end - begin).count();
  }

private:
  static core::sender id(int i) { return {{static_cast<std::uint64_t>(i + 1)}, {1}}; }

  end_point ends_[2];  // outlive the planes that call them
  core::shared_bytes payload_;
  std::unique_ptr<core::tensor_plane> planes_[2];
};

}  // namespace

result<robust_value> measured(const link_probe_options& options,
                              const std::function<result<double>()>& once) {
  std::vector<double> seconds;
  auto begin = clock::now();
  for (std::uint32_t i = 0; i < options.warm_up + options.frames_max; ++i) {
    TRY(auto time, once());
    if (i >= options.warm_up) seconds.push_back(time);
    if (seconds.size() >= 3 && clock::now() - begin > options.time_a_size) break;
  }
  return robust_mean(std::move(seconds));
}

result<std::vector<link_time>> probe_loopback(const core::emulate_options& emulate,
                                              const link_probe_options& options) {
  pair_of_planes link;
  TRY_VOID(link.connect(emulate, options.deadline));
  std::vector<link_time> table;
  std::uint32_t number = 0;
  for (auto bytes : options.sizes) {
    TRY(auto seconds,
        measured(options, [&] { return link.send(bytes, number++, options.deadline); }));
    table.push_back({bytes, seconds});
  }
  return table;
}

}  // namespace shoal::transport
