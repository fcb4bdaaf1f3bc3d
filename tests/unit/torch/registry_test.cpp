#include "torch/registry.hpp"

#include <stdexcept>

#include "unit/torch/helpers.hpp"

using namespace shoal;
using namespace shoal::engine;
using namespace shoal::engine::test;

namespace {

/// A block with any parameters and outputs.
class some_block final : public block {
public:
  some_block(std::vector<parameter_spec> parameters, std::vector<tensor_spec> outputs)
    : parameters_(std::move(parameters)), outputs_(std::move(outputs)) {}
  std::string name() const override { return "some"; }
  std::vector<parameter_spec> parameters() const override { return parameters_; }
  std::vector<tensor_spec> outputs(std::int64_t) const override { return outputs_; }
  tensors forward(const tensors&, const tensors&, pass&) const override { return {}; }

private:
  std::vector<parameter_spec> parameters_;
  std::vector<tensor_spec> outputs_;
};

using blocks = std::vector<std::vector<parameter_spec>>;

/// A trainer whose model "mine" has blocks with these parameters.
trainer with_model(blocks of, std::vector<tensor_spec> last = {{{}, true}}) {
  trainer t;
  t.models["mine"] = [=](const core::model_options&) -> result<chain> {
    chain model;
    for (auto& p : of) model.push_back(std::make_unique<some_block>(p, last));
    return model;
  };
  return t;
}

core::model_options named(std::string kind) {
  core::model_options o;
  o.kind = std::move(kind);
  return o;
}

void check_fails(const trainer& t, const std::string& kind, const std::string& text) {
  auto made = make_model(t, named(kind));
  REQUIRE_FALSE(made);
  CHECK(made.error().code == errc::config);
  CHECK_THAT(made.error().text, Catch::Contains(text));
}

}  // namespace

TEST_CASE("an unknown kind is answered with the nearest", "[torch]") {
  trainer t = with_model({{}});
  check_fails(
    t, "gpt3",
    "model.kind = \"gpt3\" is not known; the nearest is \"gpt2\" of \"emulated\", \"gpt2\", "
    "\"llama\", \"mine\"");
  check_fails(t, "min", "the nearest is \"mine\"");
  core::job_options job;
  job.data.kind = "nanogp";
  auto opened = open_data(t, job);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == errc::config);
  CHECK_THAT(opened.error().text,
             Catch::Contains("data.kind = \"nanogp\"") && Catch::Contains("\"nanogpt\""));
}

TEST_CASE("the first profile has the link that the job emulates", "[torch]") {
  core::job_options job;
  auto model = make_model({}, job.model).value();
  auto plain = first_profile(model, job);
  CHECK(plain.blocks.size() == model.size());
  job.emulate.rate = byte_rate{5e6};
  job.emulate.delay = std::chrono::milliseconds(7);
  auto slow = first_profile(model, job);
  CHECK(slow.link_bytes_per_s == 5e6);
  CHECK(slow.link_latency == plain.link_latency + std::chrono::milliseconds(7));
}

TEST_CASE("a trainer's model wins over ours of the same name", "[torch]") {
  trainer t;
  t.models["gpt2"] = with_model({{}, {}}).models["mine"];
  auto made = make_model(t, named("gpt2"));
  REQUIRE(made);
  CHECK((*made)[0]->name() == "some");
}

TEST_CASE("a chain that breaks the rules is refused", "[torch]") {
  parameter_spec a{"a", {2, 2}, {}};
  check_fails(with_model({}), "mine", "without blocks");
  check_fails(with_model(blocks(513)), "mine", "513 blocks");
  check_fails(with_model({{a, a}}), "mine", "parameter \"a\" is there twice");
  check_fails(with_model({{a}, {{"a", {2, 3}, {}}}}), "mine", "tied to one of another shape");
  check_fails(with_model({{a}, {{"a", {2, 2}, {initial::kind::ones}}}}), "mine", "tied");
  check_fails(with_model({{{"a", {-1}, {}}}}), "mine", "negative");
  check_fails(with_model({{a}}, {{{1}, true}}), "mine", "the loss");
  check_fails(with_model({{a}}, {}), "mine", "the loss");
  CHECK(make_model(with_model({{a}, {a}}), named("mine")));
  trainer empty_block;
  empty_block.models["mine"] = [](const core::model_options&) -> result<chain> { return chain(2); };
  check_fails(empty_block, "mine", "empty block");
}

TEST_CASE("what a factory throws is an error of the job", "[torch]") {
  trainer t;
  t.models["mine"] = [](const core::model_options&) -> result<chain> {
    throw std::runtime_error("no such depth");
  };
  t.datasets["mine"] = [](const core::job_options&) -> result<std::unique_ptr<dataset>> {
    throw std::runtime_error("no such table");
  };
  check_fails(t, "mine", "no such depth");
  core::job_options job;
  job.data.kind = "mine";
  auto opened = open_data(t, job);
  REQUIRE_FALSE(opened);
  CHECK_THAT(opened.error().text, Catch::Contains("no such table"));
}

TEST_CASE("a job that does not fit its model or data is refused", "[torch]") {
  auto job = small_job();
  auto model = must_make(job.model);
  small_data data(job);
  REQUIRE(check_job(job, model, data));
  errc code = errc::config;
  std::string text;
  SECTION("no micro-batches") {
    job.training.micro_batches = 0;
    text = "training.micro_batches = 0";
  }
  SECTION("too many") {
    job.training.micro_batches = 2049;
    text = "from 1 to 2048";
  }
  SECTION("empty micro-batches") {
    job.training.micro_batch_size = 0;
    text = "training.micro_batch_size";
  }
  SECTION("no threads") {
    job.training.threads = 0;
    text = "training.threads";
  }
  SECTION("an unknown optimizer") {
    job.optimizer.name = "adam";
    text = "optimizer.name = \"adam\"";
  }
  SECTION("beta1 of one") {
    job.optimizer.beta1 = 1;
    text = "optimizer.beta1";
  }
  SECTION("beta2 of one") {
    job.optimizer.beta2 = 1;
    text = "optimizer.beta2";
  }
  SECTION("negative momentum") {
    job.optimizer.momentum = -1;
    text = "optimizer.momentum";
  }
  SECTION("deeper than the model") {
    job.parallelism.depth = 5;
    text = "parallelism.depth = 5: the model has 4 blocks";
  }
  SECTION("too few samples") {
    job.training.micro_batch_size = 7;
    code = errc::data;
    text =
      "has 40 samples, and one step needs training.micro_batches (6) times "
      "training.micro_batch_size (7) = 42";
  }
  SECTION("nothing to validate with") {
    job.data.validation_fraction = 0;
    job.validation.every = 5;
    struct no_split final : dataset {
      std::uint64_t size() const override { return 40; }
      std::uint64_t validation_size() const override { return 0; }
      micro_batch get(std::span<const std::uint64_t>) const override { return {}; }
      micro_batch get_validation(std::span<const std::uint64_t>) const override { return {}; }
      std::uint64_t fingerprint() const override { return 0; }
    } without;
    auto checked = check_job(job, model, without);
    REQUIRE_FALSE(checked);
    CHECK(checked.error().code == errc::data);
    CHECK_THAT(checked.error().text, Catch::Contains("validation.every"));
    return;
  }
  auto checked = check_job(job, model, data);
  REQUIRE_FALSE(checked);
  CHECK(checked.error().code == code);
  CHECK_THAT(checked.error().text, Catch::Contains(text));
}

TEST_CASE("first costs follow the shapes", "[torch]") {
  auto job = small_job();
  job.model.dim = 64;
  auto model = must_make(job.model);
  auto costs = first_costs(model, job);
  REQUIRE(costs.size() == 4);
  CHECK(costs[1].name == "h.0");
  CHECK(costs[1].parameter_bytes == 4 * (12 * 64 * 64 + 13 * 64));
  CHECK(costs[1].state_bytes == 2 * costs[1].parameter_bytes);
  CHECK(costs[1].boundary_bytes == 4 * 2 * 6 * 64);
  CHECK(costs[0].boundary_bytes == 0);  // of samples, which every node has
  CHECK(costs[1].forward == costs[2].forward);
  CHECK(costs[1].backward.count() == Approx(2 * costs[1].forward.count()).margin(2));
  CHECK(costs[1].forward > costs[0].forward);
  CHECK(costs[1].stash_bytes > 10 * costs[1].boundary_bytes);
  CHECK(costs[1].stash_bytes < 40 * costs[1].boundary_bytes);
  job.optimizer.name = "sgd";
  CHECK(first_costs(model, job)[1].state_bytes == 0);
}
