#include "core/plan/grid_search.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <tuple>

#include "base/units.hpp"
#include "core/plan/grid_cut.hpp"
#include "core/plan/grid_text.hpp"

namespace shoal::core {

namespace {

using namespace planning;

constexpr double infinite = std::numeric_limits<double>::infinity();
// So many grids are cut, in order of what they could reach, and so much work (blocks^2 * stages)
// goes into cuts with more care for memory and links; unless nothing fits so far.
constexpr std::size_t cut_max = 192, careful_max = 6'000'000;
// With nothing found, all are cut with care until so many fit.
constexpr std::size_t fitting_max = 16;
// A chain with no more cuts than this has all of them simulated.
constexpr std::uint64_t all_cuts_max = 256;
// At least so many are compared, however large.
constexpr std::size_t compared_min = 4;
// Numbers of replicas kept for each depth, size, schedule and recompute.
constexpr std::size_t replicas_kept = 3;

/// All grids of one micro-batch size, depth, schedule and recompute, by the best number of
/// replicas.
struct group {
  double score = infinite;  ///< no grid of it is better
  const sized_model* model = nullptr;
  grid_plan plan;
};

class search {
public:
  explicit search(const grid_request& request) : request_(request) {}

  result<grid_choice> run() {
    TRY_VOID(check_request());
    TRY_VOID(collect());
    sort_groups();
    realise(false);
    if (found_.empty()) realise(true);
    if (found_.empty()) return does_not_fit();
    sort_found();
    if (request_.simulate) simulate_best();
    grid_choice choice{.best = found_.front().plan};
    for (auto& f : found_)
      if (choice.next.size() < 3 && !is_same(f.plan, choice.best)) choice.next.push_back(f.plan);
    choice.reason = explain(request_, choice);
    return choice;
  }

private:
  /// By score; groups are large, so what they are sorted by is sorted first.
  void sort_groups() {
    std::vector<std::pair<double, std::uint32_t>> order;
    for (auto& g : groups_) order.emplace_back(g.score, static_cast<std::uint32_t>(order.size()));
    std::ranges::sort(order);
    std::vector<group> sorted;
    sorted.reserve(groups_.size());
    for (auto [score, i] : order) sorted.push_back(std::move(groups_[i]));
    groups_ = std::move(sorted);
  }
  static bool is_same(const grid_plan& a, const grid_plan& b) {
    // Schedules with one list have the same numbers in flight.
    return std::tie(a.micro_batch_size, a.depth, a.replicas, a.chunks, a.cuts, a.recompute,
                    a.in_flight) == std::tie(b.micro_batch_size, b.depth, b.replicas, b.chunks,
                                             b.cuts, b.recompute, b.in_flight);
  }

  result<void> check_request() const {
    if (request_.nodes == 0)
      return {errc::too_few_nodes, "there are 0 nodes to plan for; at least 1 is needed"};
    if (request_.profiles.empty() || request_.profiles[0].profile.blocks.empty())
      return {errc::config, "the profile has no blocks; at least 1 is needed"};
    if (request_.schedules.empty())
      return {errc::config, "no schedule is allowed; name at least one, such as 1f1b"};
    for (auto order : request_.schedules)
      if (order == stage_order::as_job || order == stage_order::varuna)
        return {errc::config,
                "grids are searched for gpipe, 1f1b, 1f1b-eager, 1f1b-searched and "
                "interleaved-1f1b; \"" +
                  std::string(to_string(order)) + "\" is none of them"};
    if (!(request_.reserve >= 0 && request_.reserve < 1))
      return {errc::config, "reserve is a share of the memory, from 0 to below 1"};
    auto blocks = request_.profiles[0].profile.blocks.size();
    if (request_.depth > blocks)
      return {errc::config, "depth = " + std::to_string(request_.depth) + " asks for more stages " +
                              "than the model has blocks; the deepest that is legal is " +
                              std::to_string(blocks)};
    if (request_.depth > request_.nodes)
      return {errc::too_few_nodes,
              "depth = " + std::to_string(request_.depth) + " needs as many nodes; there are " +
                std::to_string(request_.nodes) + ", the deepest that is legal"};
    for (auto& p : request_.profiles)
      if (p.profile.blocks.size() != blocks)
        return {errc::config, "the profiles are not of one model: " + std::to_string(blocks) +
                                " and " + std::to_string(p.profile.blocks.size()) + " blocks"};
    return {};
  }

  result<void> collect() {
    for (auto& profile : request_.profiles) {
      auto m = profile.micro_batch_size;
      if (m == 0 || request_.samples < m || request_.samples % m != 0) continue;
      models_.emplace_back(request_, profile);
      auto& model = models_.back();
      auto deepest = std::min(request_.nodes, model.cost().block_count());
      for (auto depth = std::max(1u, request_.depth); depth <= deepest; ++depth) {
        for (bool recompute : {false, true}) {
          // Without a limit, and on the last stage, recomputing brings nothing.
          if (recompute && (!request_.may_recompute || depth == 1 || request_.memory_bytes == 0))
            continue;
          collect(model, depth, recompute);
        }
        if (request_.depth != 0) break;
      }
    }
    if (!models_.empty()) return {};
    std::uint32_t nearest = 1;
    for (auto& p : request_.profiles)
      if (p.micro_batch_size > 0)
        nearest = std::max(1u, request_.samples / p.micro_batch_size) * p.micro_batch_size;
    return {errc::config, "no profiled micro-batch size divides a step's " +
                            std::to_string(request_.samples) + " samples; " +
                            std::to_string(nearest) + " samples would be legal"};
  }

  void collect(const sized_model& model, std::uint32_t depth, bool recompute) {
    for (std::uint32_t chunks = 1; chunks <= std::max(1u, request_.chunks_max); ++chunks) {
      if (chunks > 1 && depth == 1) break;
      auto shape = model.shape(depth, chunks, recompute);
      if (!shape) break;
      for (auto schedule : request_.schedules)
        if ((schedule == stage_order::interleaved) == (chunks > 1))
          add_replicas(model, *shape, recompute, schedule);
    }
  }

  /// Tries all numbers of replicas that are the least for their share of micro-batches.
  void add_replicas(const sized_model& model, const pipeline_shape& shape, bool recompute,
                    stage_order schedule) {
    auto all = model.micro_batches();
    auto replicas = std::min(request_.nodes / shape.depth, all);
    struct attempt {
      double score = 0;
      std::uint32_t replicas = 1, micro_batches = 1;
    };
    std::vector<attempt> tried;
    auto best = infinite;
    while (replicas >= 1) {
      auto share = (all + replicas - 1) / replicas;
      auto fewest = (all + share - 1) / share;
      auto span = span_seconds(shape, schedule, share);
      // Fewer replicas take longer; only where nodes have a price may that be better.
      if (request_.price_per_hour <= 0 && span > 1.5 * best) break;
      auto round = schedule == stage_order::interleaved ? shape.depth : 1u;
      if (share % round == 0) {
        auto score = score_of(request_, span + exchange_least(model, shape.depth, fewest),
                              shape.depth, fewest);
        tried.push_back({score, fewest, share});
        best = std::min(best, score);
      }
      replicas = fewest - 1;
    }
    std::ranges::stable_sort(tried, {}, &attempt::score);
    for (std::size_t i = 0; i < std::min(tried.size(), replicas_kept); ++i)
      groups_.push_back({tried[i].score,
                         &model,
                         {.micro_batch_size = model.profile().micro_batch_size,
                          .depth = shape.depth,
                          .replicas = tried[i].replicas,
                          .micro_batches = tried[i].micro_batches,
                          .chunks = shape.chunks,
                          .schedule = schedule,
                          .recompute = {recompute}}});
  }

  /// Gradients of the first block alone: stage 0 has more.
  static double exchange_least(const sized_model& model, std::uint32_t depth,
                               std::uint32_t replicas) {
    auto& cost = model.cost();
    auto blocks = depth == 1 ? cost.all_blocks() : index_range{0, 1};
    return cost.exchange_seconds(blocks, replicas, 1);
  }

  /// Cuts grids in order of what they could reach; with `thorough`, all with all care.
  void realise(bool thorough) {
    std::size_t careful = 0;
    for (auto& g : groups_) {
      if (found_.size() >= cut_max || (thorough && found_.size() >= fitting_max)) break;
      auto plan = g.plan;
      auto effort = thorough || careful < careful_max ? cut_effort::careful : cut_effort::quick;
      for (auto& made : g.model->make(plan, effort, short_, careful)) add({g.score, g.model, made});
    }
  }

  void add(group found) {
    for (auto& f : found_)
      if (is_same(f.plan, found.plan)) return;
    found_.push_back(std::move(found));
  }

  void sort_found() {
    std::stable_sort(found_.begin(), found_.end(), [](auto& a, auto& b) {
      return std::tuple(a.plan.score, a.plan.nodes(), a.plan.stage_bytes_max) <
             std::tuple(b.plan.score, b.plan.nodes(), b.plan.stage_bytes_max);
    });
  }

  void simulate(group& g) const {
    g.plan.span_s = request_.simulate(g.model->profile(), g.plan);
    auto shape = g.model->shape_of(g.plan);
    g.plan.bubble = 1 - g.plan.micro_batches * shape.slowest_s / g.plan.span_s;
    set_score(request_, g.model->cost(), g.plan);
  }

  static std::uint64_t actions_of(const grid_plan& plan) {
    return std::uint64_t{2} * plan.cuts.size() * plan.micro_batches;
  }

  /// Leaves what could be compared, in order of simulated score, the best of it refined.
  void simulate_best() {
    std::uint64_t spent = 0;
    std::size_t compared = 0;
    for (; compared < found_.size(); ++compared) {
      spent += actions_of(found_[compared].plan);
      if (compared >= compared_min && spent > request_.simulated_actions_max) break;
      simulate(found_[compared]);
    }
    found_.resize(compared);
    sort_found();
    spent = 0;
    for (auto& f : found_)
      if (!(cut_count(f.plan) <= all_cuts_max ? try_all_cuts(f, spent) : refine(f, spent))) break;
    sort_found();
  }

  /// In how many ways its chain can be cut, up to a little more than all_cuts_max.
  static std::uint64_t cut_count(const grid_plan& plan) {
    auto borders = plan.cuts.back().end - 1,
         chosen = static_cast<std::uint32_t>(plan.cuts.size()) - 1;
    std::uint64_t count = 1;
    chosen = std::min(chosen, borders - chosen);
    for (std::uint32_t i = 1; i <= chosen && count <= all_cuts_max; ++i)
      count = count * (borders - chosen + i) / i;
    return count;
  }

  /// Prices other cuts of a group by simulation. False when they do not fit.
  bool simulate_cuts(group& g) const {
    if (!g.model->recut(g.plan)) return false;
    simulate(g);
    return true;
  }

  bool try_all_cuts(group& best, std::uint64_t& spent) const {
    auto shifted = best;
    auto& cuts = shifted.plan.cuts;
    auto stages = cuts.size();
    std::vector<std::uint32_t> ends(stages);
    for (std::size_t s = 0; s < stages; ++s) ends[s] = static_cast<std::uint32_t>(s) + 1;
    ends.back() = cuts.back().end;
    for (;;) {
      spent += actions_of(best.plan);
      if (spent > request_.simulated_actions_max) return false;
      for (std::size_t s = 0; s < stages; ++s) cuts[s] = {s == 0 ? 0 : ends[s - 1], ends[s]};
      auto one = shifted;
      if (simulate_cuts(one) && one.plan.score < best.plan.score) best = std::move(one);
      // The next choice of ends: move the last that can move, and close up those after it.
      auto s = stages - 1;
      while (s > 0 && ends[s - 1] + 1 == ends[s]) --s;
      if (s == 0) return true;
      ++ends[s - 1];
      for (auto after = s; after + 1 < stages; ++after) ends[after] = ends[after - 1] + 1;
    }
  }

  /// Shifts borders one block at a time as long as the simulator likes it. False when the actions
  /// allowed are spent.
  bool refine(group& best, std::uint64_t& spent) const {
    for (bool improved = true; improved;) {
      improved = false;
      for (std::size_t s = 1; s < best.plan.cuts.size(); ++s)
        for (int by : {-1, 1}) {
          if (best.plan.cuts[by < 0 ? s - 1 : s].size() == 1) continue;
          spent += actions_of(best.plan);
          if (spent > request_.simulated_actions_max) return false;
          auto shifted = best;
          shifted.plan.cuts[s - 1].end += static_cast<std::uint32_t>(by);
          shifted.plan.cuts[s].begin += static_cast<std::uint32_t>(by);
          if (simulate_cuts(shifted) && shifted.plan.score < best.plan.score)
            best = std::move(shifted), improved = true;
        }
    }
    return true;
  }

  error does_not_fit() const {
    if (short_.bytes == UINT64_MAX)
      return {errc::config, "no allowed schedule can cut the model for " +
                              std::to_string(request_.nodes) + " nodes; 1f1b always can"};
    return {errc::no_memory, "the model fits nowhere: " + text_of(byte_count{short_.bytes}) +
                               " too little at least, with " + short_.where +
                               "; more memory, more nodes or smaller micro-batches would help"};
  }

  const grid_request& request_;
  std::deque<sized_model> models_;
  std::vector<group> groups_;
  std::vector<group> found_;
  shortage short_;
};

}  // namespace

result<grid_choice> search_grids(const grid_request& request) { return search(request).run(); }

}  // namespace shoal::core
