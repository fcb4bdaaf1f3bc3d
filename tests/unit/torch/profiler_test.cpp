#include "unit/torch/helpers.hpp"

#include "torch/profiler.hpp"

using namespace shoal;
using namespace shoal::engine;
using namespace shoal::engine::test;

namespace {

std::vector<measured_block> measured(const core::job_options& job) {
  auto model = make_model({}, job.model);
  REQUIRE(model);
  small_data data(job);
  auto found = profile(job, *model, data, {.passes_min = 3, .passes_max = 4});
  INFO((found ? "" : found.error().text));
  REQUIRE(found);
  return *found;
}

}  // namespace

TEST_CASE("every block has its bytes and its times, equal blocks those of the first",
          "[torch][profile]") {
  for (auto* kind : {"gpt2", "llama"}) {
    auto job = small_job(kind);
    job.model.layers = 3;
    auto model = make_model({}, job.model).value();
    auto blocks = measured(job);
    REQUIRE(blocks.size() == model.size());
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      INFO(kind << " " << blocks[b].name);
      CHECK(blocks[b].name == model[b]->name());
      block_runtime alone(job, *model[b], static_cast<block_index>(b));
      CHECK(blocks[b].parameter_bytes == alone.parameter_bytes());
      CHECK(blocks[b].state_bytes == alone.state_bytes());
      CHECK(blocks[b].forward.mean > 0);
      CHECK(blocks[b].backward.mean > 0);
      CHECK(blocks[b].optimizer.mean > 0);
      CHECK(blocks[b].forward.used + blocks[b].forward.rejected >= 3);
      CHECK(blocks[b].stash_bytes >= blocks[b].input_bytes);
    }
    CHECK(blocks[0].measured_as == 0);
    CHECK(blocks[1].measured_as == 1);
    CHECK(blocks[2].measured_as == 1);
    CHECK(blocks[3].measured_as == 1);
    CHECK(blocks[2].forward.mean == blocks[1].forward.mean);
    CHECK(blocks.back().measured_as + 1 == blocks.size());
    // Boundaries inside are micro_batch_size x seq_len x dim floats.
    CHECK(blocks[2].input_bytes ==
          4ull * job.training.micro_batch_size * job.model.seq_len * job.model.dim);
  }
}

TEST_CASE("one micro-batch a step can be measured, with dropout and any optimizer",
          "[torch][profile]") {
  auto job = small_job("gpt2", 0.1);
  job.training.micro_batches = 1;
  job.optimizer.name = "sgd";
  auto blocks = measured(job);
  CHECK(blocks[1].state_bytes == 0);
  CHECK(blocks[1].stash_bytes > blocks[1].input_bytes);
}

TEST_CASE("a pass is told, and no more than asked for are made", "[torch][profile]") {
  auto job = small_job();
  auto model = make_model({}, job.model).value();
  small_data data(job);
  std::uint32_t last = 0, calls = 0;
  // An interval that is never narrow enough, and blocks too small to be doubted.
  auto found = profile(job, model, data,
                       {.warm_up = 0, .passes_min = 2, .passes_max = 5, .half_width_max = -1},
                       [&](std::uint32_t pass, std::uint32_t of) {
                         CHECK(of == 5);
                         last = pass;
                         ++calls;
                       });
  REQUIRE(found);
  CHECK(last == 5);
  CHECK(calls >= 5);
}

TEST_CASE("a data set that cannot be read is an error", "[torch][profile]") {
  struct broken final : dataset {
    std::uint64_t size() const override { return 40; }
    std::uint64_t validation_size() const override { return 0; }
    micro_batch get(std::span<const std::uint64_t>) const override {
      throw std::runtime_error("sample 3 is gone");
    }
    micro_batch get_validation(std::span<const std::uint64_t>) const override { return {}; }
    std::uint64_t fingerprint() const override { return 1; }
  };
  auto job = small_job();
  auto found = profile(job, make_model({}, job.model).value(), broken(), {});
  REQUIRE_FALSE(found);
  CHECK_THAT(found.error().text, Catch::Contains("sample 3 is gone"));
}
