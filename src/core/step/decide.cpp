#include "core/step/decide.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"
#include "core/reduction/tree.hpp"

namespace shoal::core {

judgement judge(const job_options& job, const round_facts& facts) {
  judgement made;
  auto& v = made.what;
  v.step = facts.step;
  if (facts.step.value > job.training.steps) {
    v.what = decision::finish;
    return made;
  }
  SHOAL_ASSERT(facts.losses.size() == job.training.micro_batches);
  reduction_tree tree{job.training.micro_batches, reduction_leaf(job.training)};
  double loss = tree_sum(tree, facts.losses) / job.training.micro_batches;
  double square = 0;
  for (double block : facts.squared_norms) square += block;
  double norm = std::sqrt(square);
  v.loss = loss;
  v.gradient_norm = norm;
  v.learning_rate = learning_rate(job, facts.step.value);

  made.offence = facts.offence;
  auto bad = std::ranges::find_if(facts.losses, [](double x) { return !std::isfinite(x); });
  if (bad != facts.losses.end()) {
    not_finite in_loss{static_cast<micro_batch_index>(bad - facts.losses.begin()),
                       static_cast<block_index>(facts.squared_norms.size() - 1)};
    made.offence = made.offence ? std::min(*made.offence, in_loss) : in_loss;
  }
  if (made.offence || !std::isfinite(loss) || !std::isfinite(norm))
    v.what =
      job.training.on_not_finite == not_finite_policy::skip ? decision::skip : decision::abort;
  else
    v.clip_factor = clip_factor(job.training.max_norm, norm);
  return made;
}

double validation_mean(const std::vector<double>& losses) {
  SHOAL_ASSERT(!losses.empty());
  auto count = static_cast<std::uint32_t>(losses.size());
  return tree_sum({count, 1}, losses) / count;
}

}  // namespace shoal::core
