#pragma once
// Tensor planes of several nodes in one process. One thread carries frames from node to node in an
// order drawn from a seed: in order between two nodes and within a direction class, in any order
// otherwise. It keeps the promises of core::tensor_plane and checks that payloads do not change
// while they wait.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/rng.hpp"
#include "core/ports.hpp"

namespace shoal::engine::test {

class fake_network {
public:
  explicit fake_network(std::uint64_t seed);
  ~fake_network();

  /// Ends the thread. Before any plane goes.
  void stop();
  /// The plane of a node; it goes after `stop` and before the network. It says that frames from
  /// node n come with n MB/s.
  std::unique_ptr<core::tensor_plane> make_plane(node_id node);
  /// The node's connections end: its peers see it break.
  void kill(node_id node);
  /// What `sender` sends is dropped from now on when `lost` says so.
  void lose(std::function<bool(node_id from, node_id to, const core::frame_header&)> lost);
  /// Changes payloads on the way. Called from the network's thread.
  void distort(
    std::function<void(node_id from, const core::frame_header&, std::byte* data)> change);
  /// Sends a frame in the name of `from`, which has no plane of its own kind or breaks its promise.
  void forge(node_id from, node_id to, core::frame_header header, std::vector<std::byte> payload);

  /// Sentences about refused frames and payloads that changed while they waited.
  std::vector<std::string> complaints() const;
  /// Frames are counted from here.
  void mark();
  /// Waits until `count` frames were sent since the mark; false when they were not within a minute.
  bool wait_for_frames(std::uint64_t count);

private:
  struct plane;
  struct frame {
    core::frame_header header;
    core::shared_bytes payload;
    std::uint64_t hash = 0;
  };
  using link = std::tuple<node_id, node_id, bool>;  // from, to, bulk
  struct queue {
    std::deque<frame> frames;
    bool waits = false;  // told `later`
  };

  void run();
  bool deliver_one(std::unique_lock<std::mutex>& lock);
  void deliver(std::unique_lock<std::mutex>& lock, const link& way, frame f);
  void announce(std::unique_lock<std::mutex>& lock);
  void push(node_id from, node_id to, core::frame_header header, core::shared_bytes payload);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  rng random_;
  std::map<node_id, plane*> planes_;
  std::set<node_id> dead_;
  std::map<link, queue> queues_;
  std::vector<node_id> to_announce_;                 // have opened a view
  std::vector<std::pair<node_id, node_id>> breaks_;  // who hears, of whom
  std::function<bool(node_id, node_id, const core::frame_header&)> lost_;
  std::function<void(node_id, const core::frame_header&, std::byte*)> change_;
  std::vector<std::string> complaints_;
  std::uint64_t sent_ = 0;
  std::condition_variable sent_more_;
  std::uint64_t resumes_ = 0;
  std::thread thread_;
};

}  // namespace shoal::engine::test
