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

}  // namespace

std::int64_t exchange_ns(const reduction_costs& costs, std::size_t k, std::uint64_t bytes) {
  if (k < 2) return 0;
  auto n = static_cast<double>(bytes);
  auto count = static_cast<double>(k);
  auto chunk = static_cast<std::uint64_t>(n / count);
  double rate = costs.link.bytes_per_s(chunk);
  auto latency = static_cast<double>(costs.link.latency_ns(chunk));
  double share = (count - 1) / count * n, sent = 0, hops = 0;
  if (costs.kind == reduction_kind::ring) {
    sent = 2 * share;
    hops = 2 * (count - 1);
  } else {
    sent = share * (costs.pieces + 1.0);
    hops = 2;
  }
  return std::llround((rate > 0 ? sent / rate * 1e9 : 0) + hops * latency);
}

ending finish_step(std::span<const holder> holders, std::size_t replica_count,
                   const reduction_costs& costs, std::vector<record>* records) {
  std::vector<span_of> spans;
  std::set<std::uint64_t> cuts{0};
  std::vector<std::uint64_t> at(replica_count, 0);
  ending out;
  for (auto& h : holders) {
    out.summed_ns = std::max(out.summed_ns, h.ready_ns);
    spans.push_back({&h, at[h.replica], at[h.replica] + h.bytes});
    cuts.insert(at[h.replica] += h.bytes);
  }
  std::map<lane_key, std::int64_t> free_at;
  if (replica_count > 1) {
    for (auto cut = cuts.rbegin(); std::next(cut) != cuts.rend(); ++cut) {
      auto begin = *std::next(cut), end = *cut;
      std::vector<const holder*> members;
      std::int64_t start = 0;
      for (auto& s : spans) {
        if (s.begin > begin || s.end < end || s.begin == s.end) continue;
        members.push_back(s.who);
        start = std::max({start, s.who->ready_ns, free_at[{s.who->replica, s.who->rank}]});
      }
      auto done = start + exchange_ns(costs, members.size(), end - begin);
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
