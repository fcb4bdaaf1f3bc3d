#include "sim/network.hpp"

#include <algorithm>

namespace shoal::sim {

void event_loop::after(nanoseconds delay, task what) {
  entries_.push({now_ + delay, asked_++, std::move(what)});
}

bool event_loop::run_next(time_point until) {
  if (entries_.empty() || entries_.top().at > until) {
    now_ = std::max(now_, until);
    return false;
  }
  now_ = entries_.top().at;
  auto what = std::move(entries_.top().what);
  entries_.pop();
  ++done_;
  what();
  return true;
}

void process::run(task what) {
  if (!alive_) return;
  if (frozen_)
    backlog_.push_back(std::move(what));
  else
    what();
}

void process::later(nanoseconds delay, task what) {
  loop_.after(delay, [this, what = std::move(what)]() mutable { run(std::move(what)); });
}

void process::thaw() {
  frozen_ = false;
  while (alive_ && !frozen_ && !backlog_.empty()) {
    auto what = std::move(backlog_.front());
    backlog_.pop_front();
    what();
  }
}

nanoseconds network::delay() {
  auto max = random_.uniform() < opts_.late_share ? opts_.late_max : opts_.delay_max;
  auto spread = static_cast<std::uint64_t>((max - opts_.delay_min).count());
  return opts_.delay_min + nanoseconds(random_.below(spread));
}

void network::send(int from, int to, task deliver, nanoseconds work) {
  auto& w = wires_[{from, to}];
  if (is_cut(from, to) || !w.held.empty())
    w.held.push_back(std::move(deliver));
  else
    pass(w, std::move(deliver), work);
}

void network::pass(wire& w, task deliver, nanoseconds work) {
  w.last = std::max(w.last, loop_.now() + delay() + work);
  loop_.after(w.last - loop_.now(), std::move(deliver));
}

void network::heal(int a, int b) {
  if (cut_.erase(std::minmax(a, b)) == 0) return;
  for (auto ends : {std::pair(a, b), std::pair(b, a)}) {
    auto& w = wires_[ends];
    for (auto& held : std::exchange(w.held, {})) pass(w, std::move(held), 0ns);
  }
}

}  // namespace shoal::sim
