#include "unit/torch/runner/fake_network.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/assert.hpp"

namespace shoal::engine::test {

namespace {

bool is_bulk(core::frame_kind kind) {
  return kind != core::frame_kind::activation && kind != core::frame_kind::gradient &&
         kind != core::frame_kind::validation;
}

std::uint64_t hash_of(const std::byte* data, std::size_t size) {
  std::uint64_t hash = 1469598103934665603u;
  for (std::size_t i = 0; i < size; ++i)
    hash = (hash ^ std::to_integer<unsigned>(data[i])) * 1099511628211u;
  return hash;
}

}  // namespace

// Lock order: the gate of a plane, then the network. The network's thread calls sinks with the gate
// alone.
struct fake_network::plane final : core::tensor_plane {
  plane(fake_network& n, node_id s) : net(n), node(s) {}
  ~plane() override {
    detach();
    std::lock_guard lock(net.mutex_);
    net.planes_.erase(node);
  }

  std::uint16_t port() const override { return static_cast<std::uint16_t>(node.value); }
  void attach(core::tensor_sink& s) override {
    std::lock_guard guard(gate);
    sink = &s;
  }
  void detach() override {
    std::lock_guard guard(gate);
    sink = nullptr;
  }
  void open(view_id v, core::sender, std::vector<core::member> members,
            std::chrono::nanoseconds) override {
    std::lock_guard guard(gate);
    std::lock_guard lock(net.mutex_);
    view = v;
    live = true;
    peers.clear();
    for (auto& m : members) peers.insert(m.who.node);
    net.to_announce_.push_back(node);
    for (auto& [way, q] : net.queues_)
      if (std::get<1>(way) == node) q.waits = false;
    net.changed_.notify_one();
  }
  void halt() override {
    std::lock_guard guard(gate);
    std::lock_guard lock(net.mutex_);
    live = false;
    for (auto& [way, q] : net.queues_)
      if (std::get<0>(way) == node) q.frames.clear(), q.waits = false;
    std::erase_if(net.breaks_, [&](auto& b) { return b.first == node; });
  }
  void send(node_id to, core::frame_header header, core::shared_bytes payload) override {
    std::lock_guard lock(net.mutex_);
    if (!live || header.view != view) return;
    if (!peers.contains(to)) net.complaints_.push_back("a frame to a node that is no peer");
    net.push(node, to, std::move(header), std::move(payload));
  }
  void resume(node_id from) override {
    std::lock_guard lock(net.mutex_);
    ++net.resumes_;
    for (auto& [way, q] : net.queues_)
      if (std::get<0>(way) == from && std::get<1>(way) == node) q.waits = false;
    net.changed_.notify_one();
  }
  std::pair<std::uint64_t, std::uint64_t> traffic() const override { return {}; }
  std::vector<core::peer_link> links() const override {
    std::lock_guard lock(net.mutex_);
    std::vector<core::peer_link> all;
    for (auto peer : peers) all.push_back({peer, {1'000'000 * peer.value, 2'000 * peer.value}});
    return all;
  }

  fake_network& net;
  node_id node;
  std::mutex gate;                    // around every call to the sink
  core::tensor_sink* sink = nullptr;  // by the gate
  view_id view;                       // the rest by the network's mutex
  bool live = false;
  std::set<node_id> peers;
};

fake_network::fake_network(std::uint64_t seed) : random_(seed), thread_([this] { run(); }) {}

fake_network::~fake_network() {
  stop();
  SHOAL_ASSERT(planes_.empty());
}

void fake_network::stop() {
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<core::tensor_plane> fake_network::make_plane(node_id node) {
  auto made = std::make_unique<plane>(*this, node);
  std::lock_guard lock(mutex_);
  planes_[node] = made.get();
  return made;
}

void fake_network::kill(node_id node) {
  std::lock_guard lock(mutex_);
  dead_.insert(node);
  for (auto& [way, q] : queues_)
    if (std::get<0>(way) == node || std::get<1>(way) == node) q.frames.clear();
  for (auto& [id, p] : planes_)
    if (id != node && p->live && p->peers.contains(node)) breaks_.push_back({id, node});
  changed_.notify_one();
}

void fake_network::lose(std::function<bool(node_id, node_id, const core::frame_header&)> lost) {
  std::lock_guard lock(mutex_);
  lost_ = std::move(lost);
}

void fake_network::distort(
  std::function<void(node_id, const core::frame_header&, std::byte*)> change) {
  std::lock_guard lock(mutex_);
  change_ = std::move(change);
}

void fake_network::forge(node_id from, node_id to, core::frame_header header,
                         std::vector<std::byte> payload) {
  auto owner = std::make_shared<std::vector<std::byte>>(std::move(payload));
  std::lock_guard lock(mutex_);
  push(from, to, std::move(header), {owner->data(), owner->size(), owner});
}

std::vector<std::string> fake_network::complaints() const {
  std::lock_guard lock(mutex_);
  return complaints_;
}

bool fake_network::wait_for_frames(std::uint64_t count) {
  std::unique_lock lock(mutex_);
  return sent_more_.wait_for(lock, std::chrono::minutes(1), [&] { return sent_ >= count; });
}

void fake_network::mark() {
  std::lock_guard lock(mutex_);
  sent_ = 0;
}

void fake_network::push(node_id from, node_id to, core::frame_header header,
                        core::shared_bytes payload) {
  SHOAL_ASSERT(payload.size == header.bytes);
  if (dead_.contains(from) || dead_.contains(to) || (lost_ && lost_(from, to, header))) return;
  ++sent_;
  sent_more_.notify_all();
  auto hash = hash_of(payload.data, payload.size);
  link way{from, to, is_bulk(header.kind)};
  queues_[way].frames.push_back({std::move(header), std::move(payload), hash});
  changed_.notify_one();
}

void fake_network::run() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    announce(lock);
    if (!deliver_one(lock) && to_announce_.empty() && breaks_.empty() && !ended_)
      changed_.wait(lock);
  }
}

/// Tells of views that can be reached, and of peers that cannot.
void fake_network::announce(std::unique_lock<std::mutex>& lock) {
  for (auto node : std::exchange(to_announce_, {})) {
    auto found = planes_.find(node);
    if (found == planes_.end() || !found->second->live) continue;
    bool whole = true;
    for (auto peer : found->second->peers)
      if (dead_.contains(peer) || !planes_.contains(peer)) {
        breaks_.push_back({node, peer});
        whole = false;
      }
    if (!whole) continue;
    auto p = found->second;
    auto view = p->view;
    lock.unlock();
    {
      std::lock_guard guard(p->gate);
      lock.lock();
      bool still = p->live && p->view == view;
      lock.unlock();
      if (still && p->sink) p->sink->opened(view);
    }
    lock.lock();
  }
  while (!breaks_.empty()) {
    auto [node, peer] = breaks_.back();
    breaks_.pop_back();
    auto found = planes_.find(node);
    if (found == planes_.end()) continue;
    auto p = found->second;
    auto view = p->view;
    lock.unlock();
    {
      std::lock_guard guard(p->gate);
      lock.lock();
      bool still = p->live && p->view == view;
      lock.unlock();
      if (still && p->sink) p->sink->broken(peer, {errc::unreachable, "the connection ended"});
    }
    lock.lock();
  }
}

bool fake_network::deliver_one(std::unique_lock<std::mutex>& lock) {
  std::vector<link> ways;
  for (auto& [way, q] : queues_)
    if (!q.frames.empty() && !q.waits && planes_.contains(std::get<1>(way))) ways.push_back(way);
  if (ways.empty()) return false;
  auto way = ways[random_.below(ways.size())];
  auto& q = queues_[way];
  auto f = std::move(q.frames.front());
  q.frames.pop_front();
  deliver(lock, way, std::move(f));
  return true;
}

void fake_network::deliver(std::unique_lock<std::mutex>& lock, const link& way, frame f) {
  auto [from, to, bulk] = way;
  auto p = planes_.at(to);
  auto change = change_;
  auto resumes = resumes_;
  lock.unlock();
  std::optional<std::string> complaint;
  bool later = false, refused = false;
  {
    std::lock_guard guard(p->gate);
    auto answer = p->sink ? p->sink->admit(from, f.header) : core::admission{};
    switch (answer.what) {
      case core::admission::kind::drop:
        break;
      case core::admission::kind::later:
        later = true;
        break;
      case core::admission::kind::refuse:
        complaint = answer.reason;
        refused = true;
        break;
      case core::admission::kind::take:
        SHOAL_ASSERT(answer.into.size == f.header.bytes);
        if (hash_of(f.payload.data, f.payload.size) != f.hash)
          complaint = "a payload changed while it waited";
        if (f.payload.size != 0) std::memcpy(answer.into.data, f.payload.data, f.payload.size);
        if (change) change(from, f.header, answer.into.data);
        p->sink->arrived(from, f.header, answer.into);
        break;
    }
  }
  lock.lock();
  if (complaint) complaints_.push_back(*complaint);
  if (later) {
    auto sender = planes_.find(from);
    bool stale =
      sender != planes_.end() && (!sender->second->live || sender->second->view != f.header.view);
    if (stale) return;
    auto& q = queues_[way];
    q.frames.push_front(std::move(f));
    q.waits = resumes == resumes_;  // else it was resumed before we got here
  }
  if (refused) {
    breaks_.push_back({from, to});
    breaks_.push_back({to, from});
  }
}

}  // namespace shoal::engine::test
