// Rule 4: every edge between ranks has its send and its receive, in one order on each channel.
//
// A channel is a directed pair of ranks; activations and gradients share it.
#include <map>

#include "core/schedule/breach.hpp"
#include "core/schedule/checks.hpp"
#include "core/schedule/text.hpp"

namespace shoal::core::checks {

namespace {

/// The receive that a send meets, or the send that a receive meets.
cell partner_of(const cell& c) {
  switch (c.what) {
    case operation::send_activation:
      return {operation::receive_activation, c.stage + 1, c.micro_batch};
    case operation::receive_activation:
      return {operation::send_activation, c.stage - 1, c.micro_batch};
    case operation::send_gradient:
      return {operation::receive_gradient, c.stage - 1, c.micro_batch};
    default:
      return {operation::send_gradient, c.stage + 1, c.micro_batch};
  }
}

/// Whether the chain has a stage on the other end of the edge.
bool has_partner(const subject& s, const cell& c) {
  bool up = c.what == operation::send_activation || c.what == operation::receive_gradient;
  return up ? c.stage + 1 < s.plan.stage_count() : c.stage > 0;
}

rank_index peer_of(const subject& s, const cell& c) {
  return s.plan.rank_of(partner_of(c).stage, c.micro_batch);
}

result<void> check_message(const subject& s, rank_index r, std::size_t i) {
  auto& c = s.plan.ranks[r][i];
  if (!has_partner(s, c))
    return breach(rule::channels, r, i, c, "the chain ends at this stage; leave it out");
  auto partner = partner_of(c);
  if (peer_of(s, c) == r)
    return breach(rule::channels, r, i, c,
                  "stage " + std::to_string(partner.stage) +
                    " is on the same rank, where nothing is sent; leave it out");
  if (s.index.find(partner.what, partner.stage, partner.micro_batch) == no_cell)
    return breach(rule::channels, r, i, c,
                  "rank " + std::to_string(peer_of(s, c)) + " lacks \"" + text_of(partner) +
                    "\", which meets it");
  return {};
}

/// Each edge of an executable plan is sent.
result<void> check_edges(const subject& s) {
  for (virtual_stage a = 0; a + 1 < s.plan.stage_count(); ++a)
    for (micro_batch_index m = 0; m < s.plan.micro_batches; ++m) {
      auto below = s.plan.rank_of(a, m), above = s.plan.rank_of(a + 1, m);
      if (below == above) continue;
      for (auto& [send, from, to] :
           {std::tuple{cell{operation::send_activation, a, m}, below, above},
            std::tuple{cell{operation::send_gradient, a + 1, m}, above, below}})
        if (s.index.find(send.what, send.stage, m) == no_cell)
          return breach(rule::channels, "rank " + std::to_string(from) + " lacks \"" +
                                          text_of(send) + "\", which rank " + std::to_string(to) +
                                          " needs");
    }
  return {};
}

result<void> check_orders(const subject& s) {
  // The sends of each channel in order, and how many of them have been received so far.
  struct channel {
    std::vector<cell_number> sends;
    std::size_t received = 0;
  };
  std::map<std::pair<rank_index, rank_index>, channel> channels;
  for (rank_index r = 0; r < s.plan.rank_count(); ++r)
    for (std::size_t i = 0; i < s.plan.ranks[r].size(); ++i)
      if (auto& c = s.plan.ranks[r][i]; is_send(c.what))
        channels[{r, peer_of(s, c)}].sends.push_back(s.index.number(r, i));
  for (rank_index r = 0; r < s.plan.rank_count(); ++r)
    for (std::size_t i = 0; i < s.plan.ranks[r].size(); ++i) {
      auto& c = s.plan.ranks[r][i];
      if (!is_receive(c.what)) continue;
      auto from = peer_of(s, c);
      auto& channel = channels[{from, r}];
      auto& sent = s.index.at(channel.sends[channel.received++]);
      auto wanted = partner_of(c);
      if (sent.what != wanted.what || sent.stage != wanted.stage ||
          sent.micro_batch != wanted.micro_batch)
        return breach(rule::channels, r, i, c,
                      "rank " + std::to_string(from) + " sends \"" + text_of(sent) +
                        "\" first; the next to receive from it is \"" + text_of(partner_of(sent)) +
                        "\"");
    }
  return {};
}

}  // namespace

result<void> channels(const subject& s) {
  if (!s.executable) return {};
  for (rank_index r = 0; r < s.plan.rank_count(); ++r)
    for (std::size_t i = 0; i < s.plan.ranks[r].size(); ++i)
      if (auto what = s.plan.ranks[r][i].what; is_send(what) || is_receive(what))
        TRY_VOID(check_message(s, r, i));
  TRY_VOID(check_edges(s));
  return check_orders(s);
}

}  // namespace shoal::core::checks
