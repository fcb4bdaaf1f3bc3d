// The event loop. All events of one instant are taken in before lanes choose what to do next, so
// that a choice never depends on the order of events within it.

#include <algorithm>
#include <cmath>
#include <string>

#include "base/assert.hpp"
#include "core/pipeline/program.hpp"
#include "core/schedule/text.hpp"

namespace shoal::core::events {

namespace {

enum kind : std::uint32_t { task_done, sent, arrived, flow_done };

struct event {
  std::int64_t at = 0;
  std::uint32_t what = 0;  // kind, then id: 2 + 30 bits
  std::uint32_t version = 0;
  kind kind_of() const { return static_cast<kind>(what >> 30); }
  std::uint32_t id() const { return what & 0x3fffffffu; }
};

bool later(const event& a, const event& b) {
  return a.at != b.at ? a.at > b.at : a.what != b.what ? a.what > b.what : a.version > b.version;
}

// How many forwards an opportunistic lane looks at for one that is ready.
constexpr std::uint32_t window = 64;

struct lane_state {
  std::uint32_t head = 0;
  std::uint32_t next_forward = 0;
  std::uint32_t running = nothing;
  std::uint32_t sending = 0;
  std::uint32_t live = 0;
  bool queued = false;
};

/// Messages of a line under shared cards: one at a time, the rest in order.
struct line_state {
  std::int64_t free_at = 0;  // without cards
  std::uint32_t first = nothing, last = nothing;
  double left_ns = 0, pace = 0;  // at full rate; share of it
  std::int64_t since = 0;
  std::uint32_t version = 0;
};

class loop {
public:
  explicit loop(const program& p)
    : p_(p),
      lanes_(p.lanes.size()),
      lines_(p.line_count),
      inputs_(p.tasks.size()),
      started_(p.tasks.size(), 0),
      sender_(p.cards.empty() && !any_blocking(p) ? 0 : p.edges.size(), nothing),
      next_(p.cards.empty() ? 0 : p.edges.size(), nothing),
      card_out_(p.cards.size(), 0),
      card_in_(p.cards.size(), 0) {
    heap_.reserve(p.edges.size() + 2 * p.lanes.size() + 16);
    dirty_.reserve(p.lanes.size());
    out_.begin_ns.assign(p.tasks.size(), -1);
    out_.end_ns.assign(p.tasks.size(), -1);
    out_.sent_ns.assign(p.edges.size(), 0);
    out_.arrived_ns.assign(p.edges.size(), 0);
    for (std::size_t t = 0; t < p.tasks.size(); ++t) inputs_[t] = p.tasks[t].inputs;
    lane_of_.resize(p.tasks.size());
    for (std::uint32_t l = 0; l < p.lanes.size(); ++l) {
      lanes_[l].head = lanes_[l].next_forward = p.lanes[l].begin;
      for (auto t = p.lanes[l].begin; t < p.lanes[l].end; ++t) lane_of_[t] = l;
      mark(l);
    }
  }

  result<outcome> run() {
    choose_all();
    while (!heap_.empty()) {
      now_ = heap_.front().at;
      while (!heap_.empty() && heap_.front().at == now_) take(pop());
      choose_all();
    }
    for (std::uint32_t l = 0; l < lanes_.size(); ++l)
      if (lanes_[l].head != p_.lanes[l].end) return stuck(l);
    return std::move(out_);
  }

private:
  static bool any_blocking(const program& p) {
    return std::any_of(p.lanes.begin(), p.lanes.end(), [](auto& l) { return l.blocking; });
  }

  void push(std::int64_t at, kind k, std::uint32_t id, std::uint32_t version = 0) {
    heap_.push_back({at, (static_cast<std::uint32_t>(k) << 30) | id, version});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    auto e = heap_.back();
    heap_.pop_back();
    return e;
  }
  void mark(std::uint32_t l) {
    if (lanes_[l].queued) return;
    lanes_[l].queued = true;
    dirty_.push_back(l);
  }
  void choose_all() {
    for (auto l : dirty_) {
      lanes_[l].queued = false;
      choose(l);
    }
    dirty_.clear();
  }

  void take(const event& e) {
    switch (e.kind_of()) {
      case task_done:
        return finish(e.id());
      case sent:
        --lanes_[e.id()].sending;
        return mark(e.id());
      case arrived:
        return arrive(e.id());
      case flow_done:
        if (lines_[e.id()].version == e.version) end_flow(e.id());
    }
  }

  void arrive(std::uint32_t edge) {
    ++out_.events;
    out_.arrived_ns[edge] = now_;
    auto t = p_.edges[edge].target;
    if (--inputs_[t] == 0) mark(lane_of_[t]);
  }

  void finish(std::uint32_t l) {
    auto& lane = lanes_[l];
    auto t = lane.running;
    auto& task = p_.tasks[t];
    ++out_.events;
    lane.running = nothing;
    out_.end_ns[t] = now_;
    if (task.live < 0) lane.live -= static_cast<std::uint32_t>(-task.live);
    for (auto e = task.first_edge; e < task.first_edge + task.edge_count; ++e) send(e, l);
    mark(l);
  }

  void send(std::uint32_t e, std::uint32_t l) {
    auto& edge = p_.edges[e];
    if (edge.link == nothing) {
      out_.sent_ns[e] = out_.arrived_ns[e] = now_;
      if (--inputs_[edge.target] == 0) mark(lane_of_[edge.target]);
      return;
    }
    auto line = p_.wires[edge.link].line;
    bool blocks = p_.lanes[l].blocking;
    if (blocks) ++lanes_[l].sending;
    if (p_.cards.empty()) {
      auto begin = std::max(now_, lines_[line].free_at);
      auto end = begin + edge.occupancy_ns;
      lines_[line].free_at = end;
      out_.sent_ns[e] = begin;
      push(end + edge.latency_ns, arrived, e);
      if (blocks) push(end, sent, l);
      return;
    }
    sender_[e] = blocks ? l : nothing;
    auto& queue = lines_[line];
    if (queue.first != nothing) {
      next_[queue.last] = e;
      queue.last = e;
      return;
    }
    queue.first = queue.last = e;
    begin_flow(line);
  }

  void begin_flow(std::uint32_t line) {
    auto& l = lines_[line];
    auto& wire = p_.wires[p_.edges[l.first].link];
    out_.sent_ns[l.first] = now_;
    l.left_ns = static_cast<double>(p_.edges[l.first].occupancy_ns);
    l.since = now_;
    active_.push_back(line);
    if (wire.card_out != nothing) ++card_out_[wire.card_out], ++card_in_[wire.card_in];
    repace(wire, line);
  }

  void end_flow(std::uint32_t line) {
    auto& l = lines_[line];
    auto e = l.first;
    auto& wire = p_.wires[p_.edges[e].link];
    push(now_ + p_.edges[e].latency_ns, arrived, e);
    if (sender_[e] != nothing) {
      --lanes_[sender_[e]].sending;
      mark(sender_[e]);
    }
    active_.erase(std::find(active_.begin(), active_.end(), line));
    ++l.version;
    if (wire.card_out != nothing) --card_out_[wire.card_out], --card_in_[wire.card_in];
    l.first = e == l.last ? nothing : next_[e];
    repace(wire, nothing);
    if (l.first != nothing) begin_flow(line);
  }

  /// Gives all messages that share a card with `changed` their new pace.
  void repace(const wire& changed, std::uint32_t fresh) {
    for (auto line : active_) {
      auto& l = lines_[line];
      auto& edge = p_.edges[l.first];
      auto& w = p_.wires[edge.link];
      bool touched = changed.card_out != nothing &&
                     (w.card_out == changed.card_out || w.card_in == changed.card_in);
      if (line != fresh && !touched) continue;
      if (line != fresh) l.left_ns -= l.pace * static_cast<double>(now_ - l.since);
      l.since = now_;
      l.pace = pace_of(w, l.first);
      auto wait = std::ceil(std::max(0.0, l.left_ns) / l.pace - 1e-6);
      push(now_ + static_cast<std::int64_t>(wait), flow_done, line, ++l.version);
    }
  }

  double pace_of(const wire& w, std::uint32_t e) const {
    auto occupancy = static_cast<double>(p_.edges[e].occupancy_ns);
    if (w.card_out == nothing || occupancy <= 0) return 1;
    double full = static_cast<double>(p_.edge_bytes[e]) / occupancy;
    double out = p_.cards[w.card_out] / card_out_[w.card_out];
    double in = p_.cards[w.card_in] / card_in_[w.card_in];
    return std::min(1.0, std::min(out, in) / full);
  }

  bool ready(std::uint32_t t) const {
    auto& task = p_.tasks[t];
    return inputs_[t] == 0 && !(task.waits && inputs_[task.partner] != 0);
  }

  void choose(std::uint32_t l) {
    auto& lane = lanes_[l];
    auto& facts = p_.lanes[l];
    if (lane.running != nothing || lane.sending > 0) return;
    while (lane.head < facts.end && started_[lane.head]) ++lane.head;
    if (lane.head == facts.end) return;
    auto t = lane.head;
    if (!facts.opportunistic || p_.tasks[t].is_forward) {
      if (ready(t)) start(l, t);
      return;
    }
    bool comes = p_.tasks[t].partner == nothing || inputs_[p_.tasks[t].partner] == 0;
    if (ready(t) && comes) return start(l, t);
    auto pulled = lane.live < facts.live_max ? ready_forward(l) : nothing;
    if (pulled != nothing) return start(l, pulled);
    if (ready(t)) start(l, t);
  }

  std::uint32_t ready_forward(std::uint32_t l) {
    auto& lane = lanes_[l];
    auto end = p_.lanes[l].end;
    auto first = std::max(lane.next_forward, lane.head);
    while (first < end && (started_[first] || !p_.tasks[first].is_forward)) ++first;
    lane.next_forward = first;
    std::uint32_t seen = 0;
    for (auto t = first; t < end && seen < window; ++t) {
      if (started_[t] || !p_.tasks[t].is_forward) continue;
      if (inputs_[t] == 0) return t;
      ++seen;
    }
    return nothing;
  }

  void start(std::uint32_t l, std::uint32_t t) {
    started_[t] = 1;
    auto& lane = lanes_[l];
    if (p_.tasks[t].live > 0) lane.live += static_cast<std::uint32_t>(p_.tasks[t].live);
    lane.running = t;
    out_.begin_ns[t] = now_;
    push(now_ + p_.tasks[t].duration_ns, task_done, l);
  }

  error stuck(std::uint32_t l) const {
    std::string text = "the order waits for itself: ";
    for (int steps = 0; steps < 4; ++steps) {
      auto t = lanes_[l].head;
      if (t == p_.lanes[l].end) break;
      auto giver = nothing;
      for (std::uint32_t other = 0; other < p_.tasks.size() && giver == nothing; ++other)
        for (std::uint32_t e = 0; e < p_.tasks[other].edge_count; ++e)
          if (p_.edges[p_.tasks[other].first_edge + e].target == t && !started_[other])
            giver = other;
      if (giver == nothing) break;
      text += (steps ? ", " : "") + ("rank " + std::to_string(p_.rank_of[l])) + " waits in \"" +
              text_of(p_.cells[t]) + "\" for \"" + text_of(p_.cells[giver]) + "\" of rank " +
              std::to_string(p_.rank_of[lane_of_[giver]]);
      l = lane_of_[giver];
    }
    return {errc::config, text + "; expected each cell after what it needs"};
  }

  const program& p_;
  std::vector<lane_state> lanes_;
  std::vector<line_state> lines_;
  std::vector<std::uint16_t> inputs_;
  std::vector<std::uint8_t> started_;
  std::vector<std::uint32_t> sender_, next_, lane_of_, active_, dirty_;
  std::vector<std::uint32_t> card_out_, card_in_;
  std::vector<event> heap_;
  outcome out_;
  std::int64_t now_ = 0;
};

}  // namespace

result<outcome> run(const program& p) { return loop(p).run(); }

}  // namespace shoal::core::events
