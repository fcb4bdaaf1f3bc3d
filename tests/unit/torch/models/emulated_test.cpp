#include "torch/models/emulated.hpp"

#include "torch/reference.hpp"
#include "unit/torch/helpers.hpp"

using namespace shoal;
using namespace shoal::engine;
using namespace shoal::engine::test;

namespace {

core::job_options emulated_job(const std::string& forward = "0s") {
  auto job = small_job();
  job.model.kind = "emulated";
  job.model.custom = {{"forward", forward}, {"backward", "0s"}};
  job.training.steps = 3;
  return job;
}

std::string refusal(core::model_options options) {
  auto made = make_emulated(options);
  REQUIRE_FALSE(made);
  CHECK(made.error().code == errc::config);
  return made.error().text;
}

}  // namespace

TEST_CASE("an emulated model trains, with the same bits however long it waits", "[torch][models]") {
  std::uint64_t digests[2];
  for (int i : {0, 1}) {
    auto job = emulated_job(i == 0 ? "0s" : "1ms");
    auto model = make_model({}, job.model).value();
    CHECK(model.size() == job.model.layers + 2);
    auto outcome = run_reference(job, model, small_data(job), {});
    INFO((outcome ? "" : outcome.error().text));
    REQUIRE(outcome);
    CHECK(std::isfinite(outcome->loss_last));
    CHECK(outcome->loss_last != outcome->loss_first);
    digests[i] = outcome->digest;
  }
  CHECK(digests[0] == digests[1]);
}

TEST_CASE("the first plan of an emulated model knows its waits", "[torch][models]") {
  auto job = emulated_job("5ms");
  auto costs = first_costs(make_model({}, job.model).value(), job);
  CHECK(costs[1].forward == std::chrono::milliseconds(5));
}

TEST_CASE("an emulated model says what is wrong with its waits", "[torch][models]") {
  auto options = emulated_job().model;
  options.custom.erase("forward");
  CHECK_THAT(refusal(options), Catch::Contains("model.custom.forward is missing"));
  options.custom["forward"] = "soon";
  CHECK_THAT(refusal(options), Catch::Contains("model.custom.forward"));
  options.custom["forward"] = "2h";
  CHECK_THAT(refusal(options), Catch::Contains("from 0s to 1min"));
  options.custom["forward"] = "1ms";
  options.custom["backwards"] = "1ms";
  CHECK_THAT(refusal(options), Catch::Contains("the nearest is \"backward\""));
}
