#include "torch/reference.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include <ATen/ATen.h>

#include "base/assert.hpp"
#include "core/messages.hpp"
#include "torch/errors.hpp"
#include "torch/numbers.hpp"
#include "torch/threads.hpp"

namespace shoal::engine {

namespace {

/// Samples come from code that others may have written; what it throws is an error of the data.
result<micro_batch> read(const std::function<micro_batch()>& get) {
  try {
    return get();
  } catch (const std::exception& e) {
    return error{errc::data, e.what()};
  }
}

bool finite(const at::Tensor& t) {
  return !t.is_floating_point() ||
         all_finite({t.const_data_ptr<float>(), static_cast<std::size_t>(t.numel())});
}

}  // namespace

reference_trainer::reference_trainer(const core::job_options& job, const chain& model,
                                     const dataset& data)
  : job_(&job),
    data_(&data),
    sums_(core::accumulate({job.training.micro_batches, core::reduction_leaf(job.training)},
                           {0, job.training.micro_batches})),
    ties_(find_ties(model)) {
  SHOAL_ASSERT(sums_.pieces.size() == 1);
  configure_threads(job.training);
  for (block_index b = 0; b < model.size(); ++b) {
    blocks_.push_back(std::make_unique<block_runtime>(job, *model[b], b));
    blocks_.back()->initialize();
  }
}

core::sample_order reference_trainer::order(std::uint64_t count) const {
  return {job_->seed, count, job_->training.micro_batches, job_->training.micro_batch_size};
}

result<step_info> reference_trainer::round(step_id step) {
  step_info info;
  info.step = step.value;
  if (core::validates_after(*job_, step.value - 1)) {
    TRY(info.validation_loss, validate());
  }
  core::round_facts facts{step, {}, {}, std::nullopt};
  for (micro_batch_index g = 0; g < job_->training.micro_batches; ++g) {
    TRY(auto batch,
        read([&] { return data_->get(core::samples_of(order(data_->size()), step, g)); }));
    facts.losses.push_back(train(batch, facts, g));
  }
  complete_sums();
  for (std::size_t b = 0; b < blocks_.size(); ++b)
    facts.squared_norms.push_back(blocks_[b]->squared_norm(ties_.counts[b]));

  auto [verdict, offence] = core::judge(*job_, facts);
  if (verdict.what == core::decision::abort) return not_finite(step, offence);
  info.loss = verdict.loss.value();
  info.gradient_norm = verdict.gradient_norm.value();
  info.learning_rate = verdict.learning_rate.value();
  info.skipped = verdict.what == core::decision::skip;
  if (info.skipped) return info;
  for (auto& b : blocks_) b->apply(step, info.learning_rate, verdict.clip_factor.value());
  return info;
}

/// One micro-batch forward and backward through all blocks; gradients go into the sums. Notes the
/// first output that is not finite.
double reference_trainer::train(const micro_batch& batch, core::round_facts& facts,
                                micro_batch_index g) {
  std::vector<forward_record> records;
  tensors boundary;
  for (auto& b : blocks_) {
    records.push_back(b->forward(std::move(boundary), &batch, facts.step, g));
    boundary = records.back().outputs;
    if (!facts.offence && !std::ranges::all_of(boundary, finite))
      facts.offence = core::not_finite{g, b->index()};
  }
  auto loss = static_cast<double>(boundary[0].item<float>());
  boundary.clear();  // the loss, which needs no gradient from outside
  for (auto b = blocks_.size(); b-- > 0;) {
    boundary =
      blocks_[b]->backward(std::move(records[b]), std::move(boundary), core::actions_of(sums_, g));
    records.pop_back();
  }
  return loss;
}

/// Turns the sums into total gradients, and gives all copies of a tied parameter the sum of theirs.
void reference_trainer::complete_sums() {
  for (auto& b : blocks_) b->set_total(b->slot(sums_.slots[0]));
  for (auto& group : ties_.groups) {
    auto part = [&](const tie_member& t) { return blocks_[t.block]->total_of(t.parameter); };
    auto first = part(group[0]);
    for (std::size_t i = 1; i < group.size(); ++i) first.add_(part(group[i]));
    for (std::size_t i = 1; i < group.size(); ++i) part(group[i]).copy_(first);
  }
}

result<double> reference_trainer::validate() const {
  std::vector<double> losses;
  for (micro_batch_index g = 0; g < job_->validation.micro_batches; ++g) {
    auto samples = core::validation_samples_of(order(data_->validation_size()), g);
    TRY(auto batch, read([&] { return data_->get_validation(samples); }));
    tensors boundary;
    for (auto& b : blocks_) boundary = b->validate(std::move(boundary), &batch);
    losses.push_back(static_cast<double>(boundary[0].item<float>()));
  }
  return core::validation_mean(losses);
}

std::vector<std::uint64_t> reference_trainer::digests() const {
  std::vector<std::uint64_t> all;
  for (auto& b : blocks_) all.push_back(b->digest());
  return all;
}

error reference_trainer::not_finite(step_id step,
                                    const std::optional<core::not_finite>& where) const {
  auto text = "step " + std::to_string(step.value) + ": ";
  auto advice = "\" is not finite; lower optimizer.lr, or say training.on_not_finite = \"skip\"";
  if (where)
    return {errc::not_finite, text + "micro-batch " + std::to_string(where->micro_batch) +
                                ": the output of block \"" +
                                blocks_[where->block]->description().name() + advice};
  auto first = std::ranges::find_if(blocks_, [](auto& b) { return !finite(b->total()); });
  SHOAL_ASSERT(first != blocks_.end());
  return {errc::not_finite,
          text + "the gradient of block \"" + (*first)->description().name() + advice};
}

namespace {

result<reference_outcome> run(const core::job_options& job, const chain& model, const dataset& data,
                              const reference_callback& on_step) {
  reference_trainer trainer(job, model, data);
  reference_outcome outcome;
  outcome.block_digests = trainer.digests();
  for (step_id step{1}; step.value <= job.training.steps; step = step.next()) {
    TRY(auto info, trainer.round(step));
    info.digest_before = core::model_digest(outcome.block_digests);
    if (on_step) on_step(info, outcome.block_digests);
    if (step.value == 1) outcome.loss_first = info.loss;
    outcome.loss_last = info.loss;
    outcome.block_digests = trainer.digests();
  }
  outcome.digest = core::model_digest(outcome.block_digests);
  if (core::validates_after(job, job.training.steps)) {
    TRY(outcome.validation_loss, trainer.validate());
  }
  return outcome;
}

}  // namespace

result<reference_outcome> run_reference(const core::job_options& job, const chain& model,
                                        const dataset& data, const reference_callback& on_step) {
  try {
    return run(job, model, data, on_step);
  } catch (const std::exception& e) {
    return in("reference", error_of(e));
  }
}

}  // namespace shoal::engine
