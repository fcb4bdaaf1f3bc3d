#pragma once
// Nodes for tests: a plane with a sink that writes down what happens, and waiting without sleeping.

#include <catch2/catch.hpp>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "transport/memory_plane.hpp"
#include "transport/tcp_plane.hpp"

namespace shoal::transport::testing {

using namespace std::chrono_literals;
using answer = core::admission::kind;

/// Longer than anything here takes; only a failing test waits so long.
constexpr auto deadline = 20s;

core::shared_bytes payload_of(std::size_t bytes, std::uint64_t seed);
core::shared_bytes room(std::size_t bytes);
bool equal(const core::shared_bytes& a, const core::shared_bytes& b);

core::frame_header header_of(std::uint64_t view, core::frame_kind kind, std::uint32_t number,
                             std::size_t bytes);

/// Takes everything unless told otherwise, and remembers.
class recording_sink : public core::tensor_sink {
public:
  struct arrival {
    node_id from;
    core::frame_header header;
    core::shared_bytes payload;
  };

  /// Replaces the answer to headers; called without the sink's lock.
  void judge(std::function<answer(node_id, const core::frame_header&)> how);
  /// Called in each `arrived`, without the sink's lock.
  void on_arrival(std::function<void()> what);

  core::admission admit(node_id from, const core::frame_header& header) override;
  void arrived(node_id from, const core::frame_header& header, core::shared_bytes payload) override;
  void broken(node_id peer, error why) override;
  void opened(view_id view) override;

  bool wait_opened(std::uint64_t view);
  bool wait_arrivals(std::size_t count);
  /// Headers that were shown to the judge, counting repeats.
  bool wait_admits(std::size_t count);
  std::optional<error> wait_broken(std::uint64_t node);
  std::vector<arrival> arrivals() const;
  std::size_t broken_count() const;
  /// Whether nobody holds the memory that was given first.
  bool first_room_is_free() const;
  void forget();

private:
  template <class F>
  bool wait(F done) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, deadline, done);
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::function<answer(node_id, const core::frame_header&)> judge_;
  std::function<void()> on_arrival_;
  std::vector<arrival> arrivals_;
  std::vector<std::pair<node_id, error>> broken_;
  std::vector<view_id> opened_;
  std::size_t admits_ = 0;
  std::optional<std::weak_ptr<void>> first_room_;
};

struct node {
  core::sender who;
  recording_sink sink;
  std::unique_ptr<core::tensor_plane> plane;  // after the sink: it calls it

  core::member member() const { return {who, {"127.0.0.1", 0, plane->port()}}; }
  void open(std::uint64_t view, std::vector<core::member> peers,
            std::chrono::nanoseconds until = deadline) {
    plane->open({view}, who, std::move(peers), until);
  }
  void send(const node& to, std::uint64_t view, core::frame_kind kind, std::uint32_t number,
            core::shared_bytes payload) {
    auto header = header_of(view, kind, number, payload.size);
    plane->send(to.who.node, header, std::move(payload));
  }
};

/// What a test may vary in planes of both kinds.
struct world_options {
  std::uint64_t frame_bytes_max = 1ull << 30;
  std::uint64_t queue_bytes_max = 4ull << 30;
};

/// Makes nodes with TCP planes on loopback. `log` counts and keeps what they said.
class tcp_world {
public:
  explicit tcp_world(world_options options = {}) {
    tcp.frame_bytes_max = options.frame_bytes_max;
    tcp.queue_bytes_max = options.queue_bytes_max;
  }
  std::unique_ptr<node> make(std::uint64_t id, std::uint64_t incarnation = 1);

  bool wait_log(const std::string& part, std::size_t count = 1);
  std::size_t log_count(const std::string& part) const;

  tcp_options tcp;

private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> log_;
};

class memory_world {
public:
  explicit memory_world(world_options options = {})
    : hub(
        {.frame_bytes_max = options.frame_bytes_max, .queue_bytes_max = options.queue_bytes_max}) {}
  std::unique_ptr<node> make(std::uint64_t id, std::uint64_t incarnation = 1);

  memory_hub hub;
};

/// Opens `view` on all, everyone with everyone, and waits for it.
void open_all(std::uint64_t view, std::vector<node*> nodes);

}  // namespace shoal::transport::testing
