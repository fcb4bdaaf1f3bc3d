#include "unit/transport/nodes.hpp"

#include <algorithm>
#include <cstring>

namespace shoal::transport::testing {

core::shared_bytes room(std::size_t bytes) {
  auto memory = std::make_shared<std::vector<std::byte>>(bytes);
  return {memory->data(), memory->size(), memory};
}

core::shared_bytes payload_of(std::size_t bytes, std::uint64_t seed) {
  auto made = room(bytes);
  std::mt19937_64 random(seed);
  std::size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    auto word = random();
    std::memcpy(made.data + i, &word, 8);
  }
  for (; i < bytes; ++i) made.data[i] = static_cast<std::byte>(random());
  return made;
}

bool equal(const core::shared_bytes& a, const core::shared_bytes& b) {
  return a.size == b.size && std::equal(a.data, a.data + a.size, b.data);
}

core::frame_header header_of(std::uint64_t view, core::frame_kind kind, std::uint32_t number,
                             std::size_t bytes) {
  return {.view = {view},
          .step = {7},
          .kind = kind,
          .block = 3,
          .micro_batch = number,
          .part = 0,
          .scalar = core::scalar_kind::u8,
          .shape = {static_cast<std::int64_t>(bytes)},
          .bytes = bytes};
}

// -- recording_sink -------------------------------------------------------------------------------

void recording_sink::judge(std::function<answer(node_id, const core::frame_header&)> how) {
  std::lock_guard lock(mutex_);
  judge_ = std::move(how);
}

void recording_sink::on_arrival(std::function<void()> what) {
  std::lock_guard lock(mutex_);
  on_arrival_ = std::move(what);
}

core::admission recording_sink::admit(node_id from, const core::frame_header& header) {
  std::unique_lock lock(mutex_);
  auto how = judge_;
  lock.unlock();
  core::admission given{.what = how ? how(from, header) : answer::take, .into = {}, .reason = {}};
  if (given.what == answer::take) given.into = room(header.bytes);
  if (given.what == answer::refuse) given.reason = "the test says no";
  lock.lock();
  ++admits_;
  if (!first_room_ && given.into.owner) first_room_ = given.into.owner;
  changed_.notify_all();
  return given;
}

void recording_sink::arrived(node_id from, const core::frame_header& header,
                             core::shared_bytes payload) {
  std::unique_lock lock(mutex_);
  arrivals_.push_back({from, header, std::move(payload)});
  changed_.notify_all();
  auto what = on_arrival_;
  lock.unlock();
  if (what) what();
}

void recording_sink::broken(node_id peer, error why) {
  std::lock_guard lock(mutex_);
  broken_.emplace_back(peer, std::move(why));
  changed_.notify_all();
}

void recording_sink::opened(view_id view) {
  std::lock_guard lock(mutex_);
  opened_.push_back(view);
  changed_.notify_all();
}

bool recording_sink::wait_opened(std::uint64_t view) {
  return wait([&] { return std::ranges::count(opened_, view_id{view}) > 0; });
}
bool recording_sink::wait_arrivals(std::size_t count) {
  return wait([&] { return arrivals_.size() >= count; });
}
bool recording_sink::wait_admits(std::size_t count) {
  return wait([&] { return admits_ >= count; });
}

std::optional<error> recording_sink::wait_broken(std::uint64_t node) {
  std::optional<error> why;
  wait([&] {
    auto found = std::ranges::find(broken_, node_id{node}, &std::pair<node_id, error>::first);
    if (found != broken_.end()) why = found->second;
    return why.has_value();
  });
  return why;
}

std::vector<recording_sink::arrival> recording_sink::arrivals() const {
  std::lock_guard lock(mutex_);
  return arrivals_;
}

std::size_t recording_sink::broken_count() const {
  std::lock_guard lock(mutex_);
  return broken_.size();
}

bool recording_sink::first_room_is_free() const {
  std::lock_guard lock(mutex_);
  return first_room_ && first_room_->expired();
}

void recording_sink::forget() {
  std::lock_guard lock(mutex_);
  arrivals_.clear();
  broken_.clear();
  opened_.clear();
  admits_ = 0;
}

// -- worlds ---------------------------------------------------------------------------------------

std::unique_ptr<node> tcp_world::make(std::uint64_t id, std::uint64_t incarnation) {
  auto options = tcp;
  options.log = [this](log_level, std::string text) {
    std::lock_guard lock(mutex_);
    log_.push_back(std::move(text));
    changed_.notify_all();
  };
  auto plane = make_tcp_plane(options);
  REQUIRE(plane);
  auto made = std::make_unique<node>();
  made->who = {{id}, {incarnation}};
  made->plane = std::move(*plane);
  made->plane->attach(made->sink);
  return made;
}

std::size_t tcp_world::log_count(const std::string& part) const {
  std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
    std::ranges::count_if(log_, [&](auto& line) { return line.find(part) != std::string::npos; }));
}

bool tcp_world::wait_log(const std::string& part, std::size_t count) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, deadline, [&] {
    return std::ranges::count_if(log_, [&](auto& line) {
             return line.find(part) != std::string::npos;
           }) >= static_cast<std::ptrdiff_t>(count);
  });
}

std::unique_ptr<node> memory_world::make(std::uint64_t id, std::uint64_t incarnation) {
  auto made = std::make_unique<node>();
  made->who = {{id}, {incarnation}};
  made->plane = hub.make_plane();
  made->plane->attach(made->sink);
  return made;
}

void open_all(std::uint64_t view, std::vector<node*> nodes) {
  for (auto* n : nodes) {
    std::vector<core::member> others;
    for (auto* other : nodes)
      if (other != n) others.push_back(other->member());
    n->open(view, others);
  }
  for (auto* n : nodes) REQUIRE(n->sink.wait_opened(view));
}

}  // namespace shoal::transport::testing
