// Rule 5: nobody waits in a circle.
//
//   Nodes are cells; cells that happen together are one node: a group, a send and its receive where
//   sends wait (rendezvous), a collective on all its ranks. Edges are program order and
//   dependencies. Kahn's algorithm takes away all that can run; what is left lies on or behind a
//   cycle, and the shortest one is told.
#include <algorithm>
#include <map>
#include <numeric>

#include "core/schedule/breach.hpp"
#include "core/schedule/checks.hpp"
#include "core/schedule/text.hpp"

namespace shoal::core::checks {

namespace {

struct edge {
  cell_number from, to;
};

class graph {
public:
  explicit graph(const subject& s) : s_(s), node_(s.index.count()) {
    std::iota(node_.begin(), node_.end(), 0);
    merge_groups();
    if (s.limits.rendezvous) merge_messages();
    merge_collectives();
    for (auto& n : node_) n = root(n);
    add_edges();
  }

  result<void> check() {
    std::vector<std::uint32_t> waiting(node_.size(), 0);
    for (auto& e : edges_) ++waiting[node_[e.to]];
    std::vector<cell_number> ready;
    for (cell_number n = 0; n < node_.size(); ++n)
      if (node_[n] == n && waiting[n] == 0) ready.push_back(n);
    std::vector<bool> done(node_.size(), false);
    while (!ready.empty()) {
      auto n = ready.back();
      ready.pop_back();
      done[n] = true;
      for_each_edge(n, [&](const edge& e) {
        if (--waiting[node_[e.to]] == 0) ready.push_back(node_[e.to]);
      });
    }
    std::vector<cell_number> left;
    for (cell_number n = 0; n < node_.size(); ++n)
      if (node_[n] == n && !done[n]) left.push_back(n);
    if (left.empty()) return {};
    return breach(rule::cycles, tell(shortest_cycle(left, done)));
  }

private:
  cell_number root(cell_number n) const {
    while (node_[n] != n) n = node_[n];
    return n;
  }
  void merge(cell_number a, cell_number b) {
    a = root(a), b = root(b);
    node_[std::max(a, b)] = std::min(a, b);
  }

  void merge_groups() {
    for (rank_index r = 0; r < s_.plan.rank_count(); ++r)
      for (std::size_t i = 0; i < s_.plan.ranks[r].size();) {
        auto end = end_of_group(s_.plan.ranks[r], i);
        for (auto k = i + 1; k < end; ++k) merge(s_.index.number(r, i), s_.index.number(r, k));
        i = end;
      }
  }

  cell_number receive_of(const cell& c) const {
    return c.what == operation::send_activation
             ? s_.index.find(operation::receive_activation, c.stage + 1, c.micro_batch)
             : s_.index.find(operation::receive_gradient, c.stage - 1, c.micro_batch);
  }

  void merge_messages() {
    for_each_cell([&](rank_index, cell_number n, const cell& c) {
      if (is_send(c.what)) merge(n, receive_of(c));
    });
  }

  /// The k-th REDUCE of a stage, TIE of a set, NORM happens on all ranks that have it.
  void merge_collectives() {
    std::vector<std::uint32_t> set_of(s_.plan.stage_count(), none);
    for (std::uint32_t t = 0; t < s_.limits.ties.size(); ++t)
      for (auto s : s_.limits.ties[t]) set_of[s] = t;
    using key = std::tuple<operation, std::uint32_t, std::uint32_t>;
    std::map<key, cell_number> first;
    std::map<std::tuple<operation, std::uint32_t, rank_index>, std::uint32_t> count;
    for_each_cell([&](rank_index r, cell_number n, const cell& c) {
      auto about = c.what == operation::reduce ? c.stage
                   : c.what == operation::tie  ? set_of[c.stage]
                   : c.what == operation::norm ? 0
                                               : none;
      if (about == none) return;
      auto k = count[{c.what, about, r}]++;
      auto [found, fresh] = first.emplace(key{c.what, about, k}, n);
      if (!fresh) merge(found->second, n);
    });
  }

  template <class Visit>
  void for_each_cell(Visit visit) const {
    for (rank_index r = 0; r < s_.plan.rank_count(); ++r)
      for (std::size_t i = 0; i < s_.plan.ranks[r].size(); ++i)
        visit(r, s_.index.number(r, i), s_.plan.ranks[r][i]);
  }

  void add_edges() {
    auto add = [&](cell_number from, cell_number to) {
      if (node_[from] != node_[to]) edges_.push_back({from, to});
    };
    for_each_cell([&](rank_index r, cell_number n, const cell& c) {
      if (n > s_.index.number(r, 0)) add(n - 1, n);
      if (is_send(c.what)) add(n, receive_of(c));
      if (s_.executable || !is_compute(c.what)) return;
      s_.index.for_each_input(c, [&](cell_number input) {
        if (s_.index.rank_of(input) != r) add(input, n);
      });
    });
    // Grouped by the node that they leave.
    std::stable_sort(edges_.begin(), edges_.end(),
                     [&](auto& a, auto& b) { return node_[a.from] < node_[b.from]; });
    first_edge_.assign(node_.size() + 1, 0);
    for (auto& e : edges_) ++first_edge_[node_[e.from] + 1];
    std::partial_sum(first_edge_.begin(), first_edge_.end(), first_edge_.begin());
  }

  template <class Visit>
  void for_each_edge(cell_number n, Visit visit) const {
    for (auto i = first_edge_[n]; i < first_edge_[n + 1]; ++i) visit(edges_[i]);
  }

  /// The shortest cycle through any of the nodes left; through as many as can be tried in a
  /// moment, where there are very many.
  std::vector<edge> shortest_cycle(const std::vector<cell_number>& left,
                                   const std::vector<bool>& done) {
    seen_in_.assign(node_.size(), 0);
    came_by_.resize(node_.size());
    std::vector<edge> best;
    auto tries = std::max<std::size_t>(1, 20'000'000 / left.size());
    auto step = (left.size() + tries - 1) / tries;
    for (std::size_t i = 0; i < left.size(); i += step) {
      auto cycle = cycle_through(left[i], done, best.empty() ? SIZE_MAX : best.size());
      if (!cycle.empty() && (best.empty() || cycle.size() < best.size())) best = std::move(cycle);
    }
    // Every node left may lie behind a cycle; then the walk backwards from one ends on it.
    return best.empty() ? cycle_behind(left[0], done) : best;
  }

  std::vector<edge> cycle_through(cell_number start, const std::vector<bool>& done,
                                  std::size_t shorter_than) {
    ++round_;
    std::vector<cell_number> layer{start};
    for (std::size_t length = 1; !layer.empty() && length < shorter_than; ++length) {
      std::vector<cell_number> next;
      for (auto n : layer)
        for (auto i = first_edge_[n]; i < first_edge_[n + 1]; ++i) {
          auto& e = edges_[i];
          auto to = node_[e.to];
          if (to == start) return path(start, e);
          if (done[to] || seen_in_[to] == round_) continue;
          seen_in_[to] = round_;
          came_by_[to] = e;
          next.push_back(to);
        }
      layer = std::move(next);
    }
    return {};
  }

  std::vector<edge> path(cell_number start, edge last) const {
    std::vector<edge> cycle{last};
    while (node_[cycle.back().from] != start) cycle.push_back(came_by_[node_[cycle.back().from]]);
    return {cycle.rbegin(), cycle.rend()};
  }

  /// Each node left waits for another one left: going back must meet itself.
  std::vector<edge> cycle_behind(cell_number n, const std::vector<bool>& done) const {
    std::map<cell_number, edge> cause;
    for (auto& e : edges_)
      if (!done[node_[e.from]] && !done[node_[e.to]]) cause.emplace(node_[e.to], e);
    std::map<cell_number, bool> seen;
    while (!seen[n]) {
      seen[n] = true;
      n = node_[cause.at(n).from];
    }
    std::vector<edge> cycle;
    for (auto at = n; cycle.empty() || at != n; at = node_[cycle.back().from])
      cycle.push_back(cause.at(at));
    return {cycle.rbegin(), cycle.rend()};
  }

  std::string name(cell_number n) const {
    return "rank " + std::to_string(s_.index.rank_of(n)) + "'s \"" + text_of(s_.index.at(n)) + "\"";
  }

  /// "rank 0 at "0B0" waits for rank 1's "1B0"; ...", each rank told where it hands on to another.
  std::string tell(const std::vector<edge>& cycle) const {
    std::string text = "the order deadlocks: ";
    auto wait = [&](cell_number who, cell_number whom) {
      if (s_.index.rank_of(who) == s_.index.rank_of(whom)) return;
      if (text.back() != ' ') text += "; ";
      text += "rank " + std::to_string(s_.index.rank_of(who)) + " at \"" +
              text_of(s_.index.at(who)) + "\" waits for " + name(whom);
    };
    for (auto i = cycle.size(); i-- > 0;) {
      auto& next = cycle[(i + 1) % cycle.size()];
      wait(next.from, cycle[i].to);  // both in one node, met by its two ranks
      wait(cycle[i].to, cycle[i].from);
    }
    return text;
  }

  const subject& s_;
  std::vector<cell_number> node_;  // of each cell: the least cell of its node
  std::vector<edge> edges_;
  std::vector<std::size_t> first_edge_;
  // Of the search for a cycle: in which round a node was seen last, and by which edge.
  std::uint32_t round_ = 0;
  std::vector<std::uint32_t> seen_in_;
  std::vector<edge> came_by_;
};

}  // namespace

result<void> cycles(const subject& s) { return graph(s).check(); }

}  // namespace shoal::core::checks
