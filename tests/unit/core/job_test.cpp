#include "core/job.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/ports.hpp"

using namespace shoal;
using namespace shoal::core;

namespace {

job_options job_of(std::uint32_t steps, std::uint32_t warm_up, const char* decay = "cosine") {
  job_options job;
  job.training.steps = steps;
  job.optimizer.lr = 0.5;
  job.lr_scheduler = {warm_up, decay, 0.1};
  return job;
}

}  // namespace

TEST_CASE("the leaf is an eighth of the step unless it is given", "[core][job]") {
  training_options training;
  training.micro_batches = 64;
  CHECK(reduction_leaf(training) == 8);
  training.micro_batches = 7;
  CHECK(reduction_leaf(training) == 1);
  training.micro_batches = 20;
  CHECK(reduction_leaf(training) == 2);
  training.reduction_leaf = 5;
  CHECK(reduction_leaf(training) == 5);
}

TEST_CASE("the rate warms up linearly from zero", "[core][job]") {
  auto job = job_of(100, 10);
  CHECK(learning_rate(job, 1) == 0.5 / 10);
  CHECK(learning_rate(job, 5) == 0.25);
  CHECK(learning_rate(job, 10) == 0.5);
  CHECK(learning_rate(job, 11) < 0.5);
  CHECK(learning_rate(job_of(100, 0), 1) < 0.5);
}

TEST_CASE("the rate falls as a cosine to its lowest at the last step", "[core][job]") {
  auto job = job_of(110, 10);
  for (std::uint64_t step = 10; step <= 110; ++step) {
    double t = double(step - 10) / 100;
    double expected = 0.5 * (0.1 + 0.9 * 0.5 * (1 + std::cos(std::numbers::pi * t)));
    CHECK(learning_rate(job, step) == Approx(expected).epsilon(1e-14));
    if (step > 10) CHECK(learning_rate(job, step) < learning_rate(job, step - 1));
  }
  CHECK(learning_rate(job, 60) == Approx(0.5 * 0.55).epsilon(1e-15));
  CHECK(learning_rate(job, 110) == 0.5 * 0.1);
  CHECK(learning_rate(job, 500) == 0.5 * 0.1);
}

TEST_CASE("a constant rate stays, and a job may be all warm-up", "[core][job]") {
  auto constant = job_of(100, 4, "constant");
  CHECK(learning_rate(constant, 2) == 0.25);
  CHECK(learning_rate(constant, 50) == 0.5);
  CHECK(learning_rate(constant, 100) == 0.5);
  auto short_job = job_of(5, 10);
  CHECK(learning_rate(short_job, 5) == 0.25);
  CHECK(learning_rate(job_of(10, 10), 10) == 0.5);
  CHECK(learning_rate(job_of(1, 0), 1) == 0.5 * 0.1);
}

TEST_CASE("only a norm above the limit is clipped", "[core][job]") {
  CHECK(clip_factor(1, 0.5) == 1);
  CHECK(clip_factor(1, 1) == 1);
  CHECK(clip_factor(1, 4) == 0.25);
  CHECK(clip_factor(0, 1e9) == 1);
  CHECK(clip_factor(2, 0) == 1);
  CHECK(clip_factor(1, std::numeric_limits<double>::quiet_NaN()) == 1);
}

TEST_CASE("validation and checkpoints come when they are due, and at the end", "[core][job]") {
  auto job = job_of(10, 0);
  auto due = [&](auto asks) {
    std::vector<std::uint64_t> steps;
    for (std::uint64_t step = 0; step <= job.training.steps; ++step)
      if (asks(job, step)) steps.push_back(step);
    return steps;
  };
  CHECK(due(validates_after) == std::vector<std::uint64_t>{});
  CHECK(due(checkpoints_after) == std::vector<std::uint64_t>{10});
  job.validation.every = 4;
  job.checkpoint.every = 5;
  CHECK(due(validates_after) == std::vector<std::uint64_t>{4, 8, 10});
  CHECK(due(checkpoints_after) == std::vector<std::uint64_t>{5, 10});
}

TEST_CASE("scalars have the sizes of their names", "[core][ports]") {
  CHECK(size_of(scalar_kind::f32) == 4);
  CHECK(size_of(scalar_kind::f64) == 8);
  CHECK(size_of(scalar_kind::i64) == 8);
  CHECK(size_of(scalar_kind::u8) == 1);
}
