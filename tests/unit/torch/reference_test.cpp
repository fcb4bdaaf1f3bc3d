#include "torch/reference.hpp"

#include <limits>
#include <set>
#include <stdexcept>

#include "core/messages.hpp"
#include "torch/data/token_stream.hpp"
#include "unit/torch/helpers.hpp"

using namespace shoal;
using namespace shoal::engine;
using namespace shoal::engine::test;

namespace {

reference_outcome must_run(const core::job_options& job, const reference_callback& on_step = {}) {
  auto model = must_make(job.model);
  auto outcome = run_reference(job, model, small_data(job), on_step);
  if (!outcome) FAIL(outcome.error().text);
  return std::move(outcome).value();
}

/// Gives a loss of any value: the mean of its parameter times `factor`, in one step.
class scaled_block final : public block {
public:
  explicit scaled_block(float factor) : factor_(factor) {}
  std::string name() const override { return "scaled"; }
  std::vector<parameter_spec> parameters() const override {
    return {{"w", {3}, {initial::kind::ones}}};
  }
  std::vector<tensor_spec> outputs(std::int64_t) const override { return {{{}, true}}; }
  tensors forward(const tensors&, const tensors& w, pass&) const override {
    // sqrt has no finite slope at 0.
    return {factor_ == 0 ? at::sqrt(w[0] - 1).sum() : (w[0] * factor_).mean()};
  }

private:
  float factor_;
};

}  // namespace

TEST_CASE("the reference learns", "[torch]") {
  auto job = small_job(GENERATE("gpt2", "llama"), 0.05);
  job.training.steps = 60;
  job.optimizer.lr = 1e-2;
  job.validation.every = 20;
  std::vector<double> losses, validated;
  auto outcome = must_run(job, [&](const step_info& info, auto&) {
    losses.push_back(info.loss);
    if (info.validation_loss) validated.push_back(*info.validation_loss);
    CHECK(info.step == losses.size());
    CHECK(info.learning_rate == core::learning_rate(job, info.step));
  });
  REQUIRE(losses.size() == 60);
  CHECK(outcome.loss_first == losses.front());
  CHECK(outcome.loss_last == losses.back());
  CHECK(losses.front() == Approx(std::log(12.0)).epsilon(0.05));
  CHECK(losses.back() < 0.6 * losses.front());
  REQUIRE(validated.size() == 2);  // of the weights after steps 20 and 40
  REQUIRE(outcome.validation_loss.has_value());
  CHECK(*outcome.validation_loss < validated[0]);
}

TEST_CASE("the reference gives the same bits each time, and the seed changes them", "[torch]") {
  auto job = small_job("gpt2", 0.1);
  job.validation.every = 1;
  auto first = must_run(job), again = must_run(job);
  CHECK(first.digest == again.digest);
  CHECK(first.block_digests == again.block_digests);
  CHECK(first.validation_loss == again.validation_loss);
  CHECK(first.digest == core::model_digest(first.block_digests));
  job.seed = 8;
  CHECK(must_run(job).digest != first.digest);
}

TEST_CASE("steps report the digest of the weights that they started from", "[torch]") {
  auto job = small_job();
  std::vector<std::uint64_t> before;
  auto outcome =
    must_run(job, [&](const step_info& info, const std::vector<std::uint64_t>& blocks) {
      CHECK(info.digest_before == core::model_digest(blocks));
      before.push_back(info.digest_before);
    });
  whole_model initial(job);
  std::vector<std::uint64_t> digests;
  for (auto& b : initial.blocks) digests.push_back(b->digest());
  REQUIRE(before.size() == 3);
  CHECK(before[0] == core::model_digest(digests));
  CHECK(before[1] != before[0]);
  CHECK(outcome.digest != before[2]);
}

TEST_CASE("tied copies stay equal", "[torch]") {
  auto job = small_job();
  auto model = must_make(job.model);
  small_data data(job);
  reference_trainer trainer(job, model, data);
  for (std::uint64_t s = 1; s <= 3; ++s) REQUIRE(trainer.round(step_id{s}));
  auto wte = parameters_of(*trainer.blocks()[0])[0];
  CHECK(same_bits(wte, parameters_of(*trainer.blocks()[3])[2]));
  CHECK_FALSE(same_bits(wte, parameters_of(*whole_model(job).blocks[0])[0]));
}

TEST_CASE("clipping bounds the step that plain descent makes", "[torch]") {
  auto job = small_job();
  job.optimizer.name = "sgd";
  job.optimizer.lr = 0.5;
  job.optimizer.weight_decay = 0;
  job.lr_scheduler.decay = "constant";
  job.training.max_norm = 0.25;
  auto model = must_make(job.model);
  small_data data(job);
  reference_trainer trainer(job, model, data);
  auto info = trainer.round(step_id{1});
  REQUIRE(info);
  CHECK(info->gradient_norm > 0.25);
  double moved = 0;
  whole_model before(job);
  auto counts = find_ties(model).counts;
  for (std::size_t b = 0; b < model.size(); ++b) {
    auto old = parameters_of(*before.blocks[b]), now = parameters_of(*trainer.blocks()[b]);
    for (std::size_t i = 0; i < old.size(); ++i)
      if (counts[b][i]) moved += (now[i] - old[i]).square().sum().item<float>();
  }
  CHECK(std::sqrt(moved) == Approx(0.5 * 0.25).epsilon(1e-3));
}

TEST_CASE("a value that is not finite stops the job or skips the step", "[torch]") {
  auto job = small_job();
  auto factor =
    GENERATE(std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 0.0f);
  chain model;
  model.push_back(std::make_unique<scaled_block>(factor));
  small_data data(job);
  SECTION("stop") {
    auto outcome = run_reference(job, model, data);
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == errc::not_finite);
    CHECK_THAT(outcome.error().text, Catch::Contains("step 1:") && Catch::Contains("\"scaled\""));
    CHECK_THAT(outcome.error().text,
               Catch::Contains(factor == 0 ? "the gradient of block"
                                           : "micro-batch 0: the output of block"));
  }
  SECTION("skip") {
    job.training.on_not_finite = core::not_finite_policy::skip;
    int skipped = 0;
    std::set<std::uint64_t> digests;
    auto outcome = run_reference(job, model, data, [&](const step_info& info, auto&) {
      skipped += info.skipped;
      digests.insert(info.digest_before);
    });
    REQUIRE(outcome);
    CHECK(skipped == 3);
    CHECK(digests == std::set{outcome->digest});
  }
}

TEST_CASE("an output that is not finite counts, even if the loss forgets it", "[torch]") {
  struct forgetful final : block {
    explicit forgetful(bool last) : last_(last) {}
    std::string name() const override { return last_ ? "last" : "first"; }
    std::vector<parameter_spec> parameters() const override { return {{name(), {1}, {}}}; }
    std::vector<tensor_spec> outputs(std::int64_t) const override {
      return last_ ? std::vector<tensor_spec>{{{}, true}} : std::vector<tensor_spec>{{{1}, true}};
    }
    tensors forward(const tensors&, const tensors& w, pass& p) const override {
      auto infinite = p.data->inputs[0][0].item<std::int64_t>() == 0;
      return {last_ ? w[0].sum() : w[0] * (infinite ? INFINITY : 1.0f)};
    }
    bool last_;
  };
  auto job = small_job();
  chain model;
  model.push_back(std::make_unique<forgetful>(false));
  model.push_back(std::make_unique<forgetful>(true));
  auto outcome = run_reference(job, model, small_data(job));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == errc::not_finite);
  CHECK_THAT(outcome.error().text, Catch::Contains("the output of block \"first\""));
}

TEST_CASE("a model that throws is named", "[torch]") {
  struct broken final : block {
    std::string name() const override { return "broken"; }
    std::vector<parameter_spec> parameters() const override { return {}; }
    std::vector<tensor_spec> outputs(std::int64_t) const override { return {{{}, true}}; }
    tensors forward(const tensors&, const tensors&, pass&) const override {
      throw std::logic_error("half done");
    }
  };
  auto job = small_job();
  chain model;
  model.push_back(std::make_unique<broken>());
  auto outcome = run_reference(job, model, small_data(job));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == errc::internal);
  CHECK_THAT(outcome.error().text, Catch::Contains("block \"broken\": half done"));
}

#ifndef __SANITIZE_ADDRESS__  // which ends the process at such a request
TEST_CASE("a model too large for the machine is an error, not an end", "[torch]") {
  auto job = small_job();
  job.model.vocab_size = 4000000000;
  job.model.dim = 4000000;
  auto outcome = run_reference(job, must_make(job.model), small_data(job));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == errc::no_memory);
}
#endif

TEST_CASE("samples that cannot be read end the run with an error of the data", "[torch]") {
  struct broken final : dataset {
    std::uint64_t size() const override { return 40; }
    std::uint64_t validation_size() const override { return 0; }
    micro_batch get(std::span<const std::uint64_t>) const override {
      throw data_error("file x: gone");
    }
    micro_batch get_validation(std::span<const std::uint64_t>) const override { return {}; }
    std::uint64_t fingerprint() const override { return 0; }
  } data;
  auto job = small_job();
  auto outcome = run_reference(job, must_make(job.model), data);
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == errc::data);
  CHECK_THAT(outcome.error().text, Catch::Contains("file x: gone"));
}
