#include "core/schedule/lower.hpp"

#include <algorithm>
#include <tuple>

#include "core/schedule/breach.hpp"
#include "core/schedule/checks.hpp"
#include "core/schedule/text.hpp"
#include "core/schedule/validate_plan.hpp"

namespace shoal::core {

namespace {

bool is_flush(const pipeline_plan& plan) { return plan.weights == weight_semantics::flush; }

result<void> check_options(const pipeline_plan& plan, const lowering_options& options) {
  if (!is_flush(plan) && !options.ties.empty())
    return breach(rule::ties, "stages that share a parameter need a flush, and plan \"" +
                                plan.name + "\" has none; untie them, or choose \"1f1b\"");
  if (!options.costs.empty() && options.costs.size() != plan.rank_count())
    return {errc::config, "lowering: costs are given for " + std::to_string(options.costs.size()) +
                            " ranks; the plan has " + std::to_string(plan.rank_count()) + "."};
  for (auto& c : options.costs)
    for (auto value : {c.forward, c.backward, c.recompute, c.input_gradient, c.weight_gradient})
      if (value < 1 || value > cell_cost_max)
        return {errc::config, "lowering: a cost is " + std::to_string(value) +
                                "; the nearest legal one is " +
                                std::to_string(value < 1 ? 1 : cell_cost_max) + "."};
  for (auto& order : plan.ranks)
    for (auto& c : order)
      if (!is_compute(c.what) && c.what != operation::optimize && c.what != operation::drop_version)
        return {errc::config,
                "lowering: the plan has \"" + text_of(c) + "\"; it must hold compute cells only."};
      else if (is_flush(plan) && !is_compute(c.what))
        return {errc::config, "lowering: the plan has \"" + text_of(c) +
                                "\", which is put there by lowering where there is a flush."};
  return {};
}

/// Without a flush the order of updates is given: gradients are summed right before each.
void put_reduce_before_updates(pipeline_plan& plan) {
  for (auto& order : plan.ranks) {
    std::vector<cell> with;
    for (auto& c : order) {
      if (c.what == operation::optimize) with.push_back({operation::reduce, c.stage});
      with.push_back(c);
    }
    order = std::move(with);
  }
}

/// One thing on the time line. What ends comes before what begins at the same time. Of cells that
/// end together, those go first that wait less for others: gradients from the first stage on, then
/// activations from the last; so a rank sends what it has made before it receives.
struct moment {
  std::uint64_t time = 0;
  enum kind : std::uint8_t { backward_ends, forward_ends, begins } what = begins;
  std::uint32_t turn = 0;
  cell_number number = 0;
  friend auto operator<=>(const moment&, const moment&) = default;
};

moment end_of(const cell& c, cell_time time, cell_number n) {
  if (c.what == operation::forward) return {time.end, moment::forward_ends, none - c.stage, n};
  return {time.end, moment::backward_ends, c.stage, n};
}

class lowering {
public:
  lowering(const pipeline_plan& plan, const lowering_options& options)
    : plan_(plan), options_(options), index_(plan), lowered_(plan) {
    for (auto& order : lowered_.ranks) order.clear();
    finishing_.assign(plan.stage_count(), 0);
  }

  result<pipeline_plan> run() {
    TRY(auto times, unroll(plan_, index_, options_.costs));
    std::vector<moment> line;
    for (rank_index r = 0; r < plan_.rank_count(); ++r)
      for (std::size_t i = 0; i < plan_.ranks[r].size(); ++i) {
        auto n = index_.number(r, i);
        auto& c = plan_.ranks[r][i];
        line.push_back({times[n].begin, moment::begins, 0, n});
        if (is_compute(c.what)) line.push_back(end_of(c, times[n], n));
      }
    std::sort(line.begin(), line.end());
    for (auto& at : line) {
      auto& c = index_.at(at.number);
      if (at.what == moment::begins)
        lowered_.ranks[index_.rank_of(at.number)].push_back(c);
      else
        end(c);
    }
    if (is_flush(plan_)) finish();
    if (options_.morph_point) put_morph_points();
    return std::move(lowered_);
  }

private:
  void end(const cell& c) {
    if (c.what == operation::forward && c.stage + 1 < plan_.stage_count())
      send(c, operation::send_activation, operation::receive_activation, c.stage + 1);
    if ((c.what == operation::backward || c.what == operation::input_gradient) && c.stage > 0)
      send(c, operation::send_gradient, operation::receive_gradient, c.stage - 1);
    if (checks::finishes(c) && is_flush(plan_) && options_.reduce &&
        ++finishing_[c.stage] == plan_.micro_batches)
      for (auto r : checks::ranks_of(plan_, c.stage))
        lowered_.ranks[r].push_back({operation::reduce, c.stage});
  }

  void send(const cell& c, operation out, operation in, virtual_stage other) {
    auto from = plan_.rank_of(c.stage, c.micro_batch), to = plan_.rank_of(other, c.micro_batch);
    if (from == to) return;
    lowered_.ranks[from].push_back({out, c.stage, c.micro_batch});
    lowered_.ranks[to].push_back({in, other, c.micro_batch});
  }

  /// The end of a batch with a flush.
  void finish() {
    for (rank_index r = 0; r < plan_.rank_count(); ++r) {
      auto stages = checks::stages_of(plan_, r);
      if (stages.empty()) continue;
      auto& order = lowered_.ranks[r];
      for (auto& set : options_.ties) {
        auto first = std::find_if(stages.begin(), stages.end(), [&](auto s) {
          return std::find(set.begin(), set.end(), s) != set.end();
        });
        if (first != stages.end()) order.push_back({operation::tie, *first});
      }
      if (options_.norm) order.push_back({operation::norm, stages[0]});
      for (auto s : stages) order.push_back({operation::optimize, s});
    }
  }

  void put_morph_points() {
    for (rank_index r = 0; r < plan_.rank_count(); ++r)
      if (auto stages = checks::stages_of(plan_, r); !stages.empty())
        lowered_.ranks[r].push_back({operation::morph_point, stages[0]});
  }

  const pipeline_plan& plan_;
  const lowering_options& options_;
  cell_index index_;
  pipeline_plan lowered_;
  std::vector<std::uint32_t> finishing_;  // B or W of each stage so far
};

}  // namespace

result<pipeline_plan> lower(const pipeline_plan& compute_only, const lowering_options& options) {
  TRY_VOID(check_shape(compute_only));
  TRY_VOID(check_options(compute_only, options));
  TRY_VOID(validate_plan(compute_only));
  if (is_flush(compute_only)) return lowering(compute_only, options).run();
  auto plan = compute_only;
  if (options.reduce) put_reduce_before_updates(plan);
  return lowering(plan, options).run();
}

}  // namespace shoal::core
