#include "core/plan/grid_cut.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/units.hpp"
#include "core/plan/cuts.hpp"

namespace shoal::core::planning {

namespace {

std::vector<grid_block> weights(const plan_profile& profile, bool recompute) {
  std::vector<grid_block> blocks;
  for (auto& b : profile.blocks) {
    auto once =
      static_cast<std::uint64_t>(std::max<std::int64_t>(1, (b.forward + b.backward).count()));
    auto again = recompute ? static_cast<std::uint64_t>(b.forward.count()) : 0;
    blocks.push_back({once + again, once, b.boundary_bytes, b.parameter_bytes + b.state_bytes});
  }
  return blocks;
}

}  // namespace

sized_model::sized_model(const grid_request& request, const sized_profile& profile)
  : request_(request),
    profile_(profile),
    tree_{request.samples / profile.micro_batch_size,
          std::max(1u, request.samples / profile.micro_batch_size / 8)},
    cost_(profile.profile),
    plain_parts_(weights(profile.profile, false)),
    again_parts_(weights(profile.profile, true)) {
  transfer_min_s_ = std::numeric_limits<double>::infinity();
  for (block_index b = 1; b < cost_.block_count(); ++b)
    transfer_min_s_ = std::min(transfer_min_s_, cost_.transfer_seconds(b));
  if (cost_.block_count() == 1) transfer_min_s_ = 0;
  hop_min_s_ = transfer_min_s_ + cost_.latency_seconds();
}

std::optional<pipeline_shape> sized_model::shape(std::uint32_t depth, std::uint32_t chunks,
                                                 bool recompute) const {
  auto slowest = parts(recompute).bottleneck(depth * chunks);
  if (!slowest) return std::nullopt;
  pipeline_shape shape{.depth = depth, .chunks = chunks};
  // A node is at least as slow as its slowest chunk, and at least as an even share. The last stage
  // does not recompute: at least what is left when it takes all it may.
  shape.sum_s = cost_.seconds(cost_.all_blocks(), false);
  shape.slowest_s = std::max(static_cast<double>(*slowest) * 1e-9, shape.sum_s / depth);
  shape.hop_s = depth > 1 ? hop_min_s_ : 0;
  shape.transfer_s = depth > 1 ? transfer_min_s_ : 0;
  return shape;
}

double sized_model::stage_seconds(const grid_plan& plan, std::size_t s) const {
  return cost_.seconds(plan.cuts[s], plan.recompute[s]);
}

pipeline_shape sized_model::shape_of(const grid_plan& plan) const {
  pipeline_shape shape{.depth = plan.depth, .chunks = plan.chunks};
  std::vector<double> nodes(plan.depth, 0);
  for (std::size_t s = 0; s < plan.cuts.size(); ++s) {
    auto time = stage_seconds(plan, s);
    nodes[s % plan.depth] += time;
    shape.sum_s += time;
    if (s == 0 || plan.depth == 1) continue;
    auto transfer = cost_.transfer_seconds(plan.cuts[s].begin);
    shape.transfer_s = std::max(shape.transfer_s, transfer);
    shape.hop_s += (transfer + cost_.latency_seconds()) / static_cast<double>(plan.cuts.size() - 1);
  }
  shape.slowest_s = *std::max_element(nodes.begin(), nodes.end());
  return shape;
}

std::uint64_t sized_model::limit() const {
  if (request_.memory_bytes == 0) return UINT64_MAX;
  return static_cast<std::uint64_t>(static_cast<double>(request_.memory_bytes) *
                                    (1 - request_.reserve));
}

std::vector<std::uint64_t> sized_model::needed(const grid_plan& plan) const {
  auto slots = slot_count_of(tree_, {0, plan.micro_batches});
  std::vector<std::uint64_t> bytes(plan.depth, 0);
  for (std::size_t s = 0; s < plan.cuts.size(); ++s) {
    auto here = cost_.needed_bytes(plan.cuts[s], plan.in_flight[s], slots, plan.recompute[s]);
    // What a process takes beside its stages counts once.
    bytes[s % plan.depth] += s < plan.depth ? here : here - process_reserve_bytes;
  }
  return bytes;
}

bool sized_model::fits(const grid_plan& plan, shortage* short_of) const {
  if (limit() == UINT64_MAX) return true;
  auto bytes = needed(plan);
  auto most =
    static_cast<std::size_t>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
  if (bytes[most] <= limit()) return true;
  if (short_of != nullptr && bytes[most] - limit() < short_of->bytes) {
    auto& blocks = plan.cuts[most];
    short_of->bytes = bytes[most] - limit();
    short_of->where =
      std::string(to_string(plan.schedule)) + ", " + std::to_string(plan.depth) +
      (plan.depth == 1 ? " stage" : " stages") + ", micro-batches of " +
      std::to_string(plan.micro_batch_size) + (plan.recompute[most] ? ", recomputing" : "") +
      ": stage " + std::to_string(most) + " with blocks " + std::to_string(blocks.begin) + "-" +
      std::to_string(blocks.end - 1) + " needs " + text_of(byte_count{bytes[most]}) +
      ", a node has " + text_of(byte_count{limit()}) + " after the reserve";
  }
  return false;
}

bool sized_model::cut_with_care(grid_plan& plan) const {
  // Nodes with several chunks are not cut by memory: their chunks would have to be cut together.
  if (plan.chunks > 1) return false;
  auto slots = slot_count_of(tree_, {0, plan.micro_batches});
  auto cut = cut_blocks(cost_.block_count(), plan.depth, [&](stage_index s, index_range blocks) {
    bool again = plan.recompute[0] && s + 1 < plan.depth;
    if (cost_.needed_bytes(blocks, plan.in_flight[s], slots, again) > limit())
      return std::numeric_limits<double>::infinity();
    auto input = s > 0 ? cost_.transfer_seconds(blocks.begin) : 0;
    return std::max(cost_.seconds(blocks, again), input);
  });
  if (!cut) return false;
  plan.cuts = *std::move(cut);
  return true;
}

void sized_model::spare_recompute(grid_plan& plan) const {
  // Each stage that fits without recomputing need not: it becomes faster, and nothing else changes.
  auto slots = slot_count_of(tree_, {0, plan.micro_batches});
  if (plan.chunks > 1) return;
  for (std::size_t s = 0; s + 1 < plan.cuts.size(); ++s)
    if (plan.recompute[s] &&
        cost_.needed_bytes(plan.cuts[s], plan.in_flight[s], slots, false) <= limit())
      plan.recompute[s] = false;
}

bool sized_model::finish(grid_plan& plan) const {
  if (plan.recompute[0] && limit() != UINT64_MAX) spare_recompute(plan);
  return reprice(plan);
}

std::vector<grid_plan> sized_model::make(grid_plan plan, cut_effort effort, shortage& short_of,
                                         std::size_t& careful) const {
  bool again = !plan.recompute.empty() && plan.recompute[0];
  auto stages = plan.depth * plan.chunks;
  std::vector<index_range> present;
  if (request_.present) present = request_.present->cuts;
  auto cut = parts(again).cut(stages, present);
  if (!cut) return {};
  plan.cuts = *std::move(cut);
  plan.recompute.assign(stages, again);
  plan.recompute.back() = false;
  auto shape = shape_of(plan);
  plan.in_flight.clear();
  for (std::uint32_t s = 0; s < stages; ++s)
    plan.in_flight.push_back(stash_count(shape, plan.schedule, plan.micro_batches, s));
  std::vector<grid_plan> made;
  auto other = plan;
  bool does_fit = fits(plan, &short_of);
  if (does_fit && finish(plan)) made.push_back(std::move(plan));
  constexpr double slow_link = 0.5;  // of the slowest stage: then borders matter
  if (effort == cut_effort::quick || (does_fit && shape.transfer_s < slow_link * shape.slowest_s))
    return made;
  careful += std::size_t{cost_.block_count()} * cost_.block_count() * stages;
  if (cut_with_care(other) && finish(other)) made.push_back(std::move(other));
  return made;
}

bool sized_model::recut(grid_plan& plan) const {
  if (reprice(plan)) return true;
  if (!request_.may_recompute || plan.depth == 1) return false;
  plan.recompute.assign(plan.cuts.size(), true);
  plan.recompute.back() = false;
  return fits(plan, nullptr) && finish(plan);
}

bool sized_model::reprice(grid_plan& plan) const {
  if (!fits(plan, nullptr)) return false;
  auto shape = shape_of(plan);
  plan.span_s = span_seconds(shape, plan.schedule, plan.micro_batches);
  plan.bubble = 1 - plan.micro_batches * shape.slowest_s / plan.span_s;
  plan.exchange_s = cost_.exchange_seconds(plan.cuts[0], plan.replicas, 1);
  plan.stage_bytes_max = 0;
  for (auto bytes : needed(plan)) plan.stage_bytes_max = std::max(plan.stage_bytes_max, bytes);
  set_score(request_, cost_, plan);
  return true;
}

}  // namespace shoal::core::planning
