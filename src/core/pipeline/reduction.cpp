#include "core/pipeline/reduction.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace shoal::core::events {

namespace {

using lane_key = std::pair<std::uint32_t, rank_index>;

struct span_of {
  const holder* who;
  std::uint64_t begin, end;
};

/// Each of k sends `bytes` in all, in `hops` messages of `chunk` bytes one after the other.
std::int64_t sending_ns(const link_table& link, double bytes, double hops, std::uint64_t chunk) {
  double rate = link.bytes_per_s(chunk);
  return std::llround((rate > 0 ? bytes / rate * 1e9 : 0) +
                      hops * static_cast<double>(link.latency_ns(chunk)));
}

/// How long k replicas take for n bytes.
std::int64_t exchange_ns(const reduction_costs& costs, std::size_t k, std::uint64_t bytes) {
  if (k < 2) return 0;
  auto n = static_cast<double>(bytes), count = static_cast<double>(k);
  auto share = (count - 1) / count * n;
  auto chunk = static_cast<std::uint64_t>(n / count);
  if (costs.kind == reduction_kind::ring)
    return sending_ns(costs.link, 2 * share, 2 * (count - 1), chunk);
  return sending_ns(costs.link, share * (costs.pieces + 1.0), 2, chunk);
}

/// How long the copies of a stage in one replica take for n bytes: a ring over its own links.
std::int64_t copies_ns(const simulation_costs& costs, std::span<const rank_index> ranks,
                       std::uint64_t bytes) {
  std::int64_t slowest = 0;
  if (ranks.size() < 2) return slowest;
  auto n = static_cast<double>(bytes), count = static_cast<double>(ranks.size());
  bool shared = costs.half_duplex && ranks.size() == 2;  // both ways of the one pair
  auto sent = 2 * (count - 1) / count * n * (shared ? 2 : 1);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    auto& link = costs.link_from(ranks[i], ranks[(i + 1) % ranks.size()]);
    slowest = std::max(
      slowest, sending_ns(link, sent, 2 * (count - 1), static_cast<std::uint64_t>(n / count)));
  }
  return slowest;
}

/// How long all that hold a piece take; `members` by replica.
std::int64_t piece_ns(std::span<const holder* const> members,
                      std::span<const replica_input> replicas, const reduction_costs& costs,
                      std::uint64_t bytes) {
  std::int64_t inside = 0;
  std::size_t copies_min = members.size(), k = 0;
  for (std::size_t i = 0; i < members.size(); ++k) {
    std::vector<rank_index> ranks;
    auto replica = members[i]->replica;
    for (; i < members.size() && members[i]->replica == replica; ++i)
      ranks.push_back(members[i]->rank);
    inside = std::max(inside, copies_ns(*replicas[replica].costs, ranks, bytes));
    copies_min = std::min(copies_min, ranks.size());
  }
  return inside + exchange_ns(costs, k, bytes / std::max<std::size_t>(copies_min, 1));
}

bool same_stage(const holder& a, const holder& b) {
  return a.replica == b.replica && a.stage == b.stage;
}

}  // namespace

ending finish_step(std::span<const holder> holders, std::span<const replica_input> replicas,
                   const reduction_costs& costs, std::vector<record>* records) {
  std::vector<span_of> spans;
  std::set<std::uint64_t> cuts{0};
  std::uint64_t at = 0;
  bool alone = replicas.size() == 1;
  ending out;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    auto& h = holders[i];
    out.summed_ns = std::max(out.summed_ns, h.ready_ns);
    bool copy = i > 0 && same_stage(holders[i - 1], h);
    if (copy) {
      alone = false;
    } else {
      if (i > 0 && holders[i - 1].replica != h.replica) at = 0;
      at += h.bytes;
    }
    spans.push_back({&h, at - h.bytes, at});
    cuts.insert(at);
  }
  std::map<lane_key, std::int64_t> free_at;
  if (!alone) {
    for (auto cut = cuts.rbegin(); std::next(cut) != cuts.rend(); ++cut) {
      auto begin = *std::next(cut), end = *cut;
      std::vector<const holder*> members;
      std::int64_t start = 0;
      for (auto& s : spans) {
        if (s.begin > begin || s.end < end || s.begin == s.end) continue;
        members.push_back(s.who);
        start = std::max({start, s.who->ready_ns, free_at[{s.who->replica, s.who->rank}]});
      }
      if (members.size() < 2) continue;
      auto done = start + piece_ns(members, replicas, costs, end - begin);
      out.summed_ns = std::max(out.summed_ns, done);
      for (auto* h : members) {
        free_at[{h->replica, h->rank}] = done;
        if (records)
          records->push_back({record_kind::reduce,
                              h->replica,
                              h->rank,
                              h->rank,
                              {operation::reduce, h->stage},
                              start,
                              done});
      }
    }
  }
  auto apply = out.summed_ns + costs.norm_ns;
  std::map<lane_key, std::int64_t> applied;
  out.end_ns = apply;
  for (auto& h : holders) {
    auto& t = applied.try_emplace({h.replica, h.rank}, apply).first->second;
    if (records && h.optimizer_ns > 0)
      records->push_back({record_kind::optimize,
                          h.replica,
                          h.rank,
                          h.rank,
                          {operation::optimize, h.stage},
                          t,
                          t + h.optimizer_ns});
    t += h.optimizer_ns;
    out.end_ns = std::max(out.end_ns, t);
  }
  out.end_ns += costs.step_overhead_ns;
  return out;
}

}  // namespace shoal::core::events
