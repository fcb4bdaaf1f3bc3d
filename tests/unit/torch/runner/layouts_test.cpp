// Whatever the layout and the schedule, each round is bit for bit that of the reference.
#include "unit/torch/with_torch.hpp"

#include "unit/torch/runner/fleet.hpp"

namespace shoal::engine::test {

namespace {

core::job_options job_of(const std::string& kind, double dropout) {
  auto job = small_job(kind, dropout);
  job.model.layers = 4;  // 6 blocks
  job.validation.every = 2;
  job.validation.micro_batches = 5;
  job.checkpoint.every = 2;
  return job;
}

/// Trains the whole job in one view.
void train(const core::job_options& job, const expected_run& expected, const core::layout& shape) {
  INFO(core::text_of(shape) << ", " << job.parallelism.schedule << ", recompute "
                            << static_cast<int>(job.training.recompute));
  fleet nodes(job);
  for (auto number : numbers_of(shape)) nodes.add(number);
  nodes.enter(shape, {});
  nodes.finish(expected);
  CHECK(nodes.store().count({2}) == 6);
  CHECK(nodes.store().count({3}) == 6);
}

const std::vector<std::vector<chain_of_nodes>> shapes{
  {{{{1, 6}}, 6}},
  {{{{1, 3}, {2, 3}}, 6}},
  {{{{1, 1}, {2, 4}, {3, 1}}, 6}},
  {{{{1, 6}}, 3}, {{{2, 6}}, 3}},
  {{{{1, 3}, {2, 3}}, 4}, {{{3, 6}}, 2}},
  {{{{1, 2}, {2, 4}}, 1}, {{{3, 5}, {4, 1}}, 5}},
  {{{{1, 2}, {2, 2}, {3, 2}}, 3}, {{{4, 1}, {5, 2}, {6, 3}}, 3}},
  {{{{1, 3}, {2, 3}}, 2}, {{{3, 6}}, 1}, {{{4, 2}, {5, 1}, {6, 3}}, 3}},
};

}  // namespace

TEST_CASE("every layout trains to the bits of the reference", "[torch][runner]") {
  auto kind = GENERATE("gpt2", "llama");
  auto dropout = GENERATE(0.0, 0.2);
  auto job = job_of(kind, dropout);
  expected_run expected(job);
  for (auto& shape : shapes) train(job, expected, make_layout(shape));
}

TEST_CASE("a stage reports the median of what its plane has measured", "[torch][runner]") {
  auto job = job_of("gpt2", 0);
  fleet nodes(job);
  auto shape = make_layout({{{{1, 1}, {2, 2}, {3, 2}, {4, 1}}, 6}});
  for (auto number : numbers_of(shape)) nodes.add(number);
  nodes.enter(shape, {});
  CHECK(nodes.next_report(1).links == core::link_figures{3'000'000, 6'000});  // of 2, 3, 4
  CHECK(nodes.next_report(3).links == core::link_figures{2'000'000, 4'000});  // of 1, 2, 4
}

TEST_CASE("every schedule trains to the bits of the reference", "[torch][runner]") {
  auto kind = GENERATE("gpt2", "llama");
  auto job = job_of(kind, 0.1);
  job.training.steps = 3;
  expected_run expected(job);
  for (auto recompute : {false, true})
    for (auto schedule : {"gpipe", "1f1b", "1f1b-eager"}) {
      job.parallelism.schedule = schedule;
      job.training.recompute = core::recompute_rule{recompute};
      for (auto i : {0, 2, 5})
        train(job, expected, make_layout(shapes[static_cast<std::size_t>(i)]));
    }
}

TEST_CASE("replicas that are cut inside a leaf exchange single micro-batches", "[torch][runner]") {
  auto job = job_of("gpt2", 0.1);
  job.training.micro_batches = 11;
  job.training.reduction_leaf = 4;
  job.training.steps = 3;
  expected_run expected(job);
  train(job, expected, make_layout({{{{1, 3}, {2, 3}}, 6}, {{{3, 6}}, 5}}));
  train(job, expected, make_layout({{{{1, 6}}, 3}, {{{2, 6}}, 2}, {{{3, 6}}, 5}, {{{4, 6}}, 1}}));
}

TEST_CASE("plain and momentum SGD, and no clipping, are the reference's too", "[torch][runner]") {
  auto job = job_of("gpt2", 0);
  job.optimizer.name = "sgd";
  job.optimizer.momentum = GENERATE(0.0, 0.9);
  job.training.max_norm = 0;
  expected_run expected(job);
  train(job, expected, make_layout(shapes[5]));
}

}  // namespace shoal::engine::test
