#include "sim/symbols.hpp"

#include "base/assert.hpp"
#include "core/step/decide.hpp"

namespace shoal::sim {

/// The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA'14) over a product-mixed pair.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x =
    a * 0x9e3779b97f4a7c15 + (b ^ (b >> 32)) * 0xd6e8feb86659fd93 + 0x632be59bd9b4e019;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

namespace {

enum salt : std::uint64_t {
  weights_salt = 11,
  input_salt,
  loss_salt,
  validation_salt,
  backward_salt
};

double unit(std::uint64_t x) { return static_cast<double>(x >> 11) * 0x1p-53; }

}  // namespace

std::uint64_t initial_weights(block_index block) { return mix(weights_salt, block); }
std::uint64_t input_of(step_id step, micro_batch_index g) { return mix(input_salt, step.value, g); }
std::uint64_t forward(std::uint64_t activation, std::uint64_t weights) {
  return mix(activation, weights);
}
std::uint64_t gradient(std::uint64_t from_right, std::uint64_t activation, std::uint64_t weights) {
  return mix(from_right, activation, weights);
}
std::uint64_t backward(std::uint64_t from_right, std::uint64_t weights) {
  return mix(backward_salt, from_right, weights);
}
std::uint64_t loss_gradient(std::uint64_t last_activation) {
  return mix(loss_salt, last_activation);
}
double loss_of(std::uint64_t last_activation) { return 1 + 4 * unit(last_activation); }
double squared_norm_of(std::uint64_t sum) { return 3 * unit(mix(sum, sum)); }
double validation_loss_of(micro_batch_index g, std::uint64_t last_block_weights) {
  return 1 + unit(mix(validation_salt, g, last_block_weights));
}

std::uint64_t apply(std::uint64_t weights, std::uint64_t sum, const core::verdict& word) {
  if (word.what != core::decision::apply) return weights;
  return mix(mix(weights, sum), word.clip_factor.bits, word.learning_rate.bits);
}

std::uint64_t all_counted_once(std::uint32_t micro_batches) {
  SHOAL_ASSERT(micro_batches <= counted_micro_batches_max);
  std::uint64_t all = 0;
  for (micro_batch_index g = 0; g < micro_batches; ++g) all += counted_once(g);
  return all;
}

namespace {

/// What is told with a round of the weights that it started from.
core::verdict with_news(core::verdict word, const core::job_options& job,
                        const std::vector<std::uint64_t>& weights) {
  word.digest_before = core::model_digest(weights);
  if (!core::validates_after(job, word.step.value - 1)) return word;
  std::vector<double> losses;
  for (micro_batch_index g = 0; g < job.validation.micro_batches; ++g)
    losses.push_back(validation_loss_of(g, weights.back()));
  word.validation_loss = core::validation_mean(losses);
  return word;
}

}  // namespace

reference make_reference(const core::job_options& job, std::uint32_t block_count) {
  reference made;
  std::vector<std::uint64_t> weights;
  for (block_index b = 0; b < block_count; ++b) weights.push_back(initial_weights(b));
  made.weights.push_back(weights);
  made.verdicts.emplace_back();  // there is no round 0
  for (step_id step{1}; step.value <= job.training.steps; step = step.next()) {
    core::round_facts facts{step, {}, {}, {}};
    std::vector<std::uint64_t> sums(block_count);
    for (micro_batch_index g = 0; g < job.training.micro_batches; ++g) {
      std::vector<std::uint64_t> at{input_of(step, g)};
      for (auto w : weights) at.push_back(forward(at.back(), w));
      facts.losses.push_back(loss_of(at.back()));
      auto from_right = loss_gradient(at.back());
      for (block_index b = block_count; b-- > 0;) {
        sums[b] += gradient(from_right, at[b], weights[b]);
        from_right = backward(from_right, weights[b]);
      }
    }
    for (auto sum : sums) facts.squared_norms.push_back(squared_norm_of(sum));
    made.verdicts.push_back(with_news(core::judge(job, facts).what, job, weights));
    for (block_index b = 0; b < block_count; ++b)
      weights[b] = apply(weights[b], sums[b], made.verdicts.back());
    made.weights.push_back(weights);
  }
  auto closing = core::judge(job, {{job.training.steps + 1ull}, {}, {}, {}}).what;
  made.verdicts.push_back(with_news(closing, job, weights));
  return made;
}

}  // namespace shoal::sim
