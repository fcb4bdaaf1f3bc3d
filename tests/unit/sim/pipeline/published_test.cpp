// The simulator against what others measured. Prints each row with its error.

#include "sim/pipeline/published.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace shoal;
using namespace shoal::sim;

namespace {

struct summary {
  double median = 0, worst = 0;
};

summary of(std::vector<double> errors) {
  for (auto& e : errors) e = std::abs(e);
  std::sort(errors.begin(), errors.end());
  auto half = errors.size() / 2;
  return {errors.size() % 2 == 1 ? errors[half] : (errors[half - 1] + errors[half]) / 2,
          errors.back()};
}

double value(const result<double>& r) {
  INFO((r ? "" : r.error().text));
  REQUIRE(r);
  return *r;
}

struct network {
  const char* name;
  double delay_s, bits_per_s;
};
constexpr network networks[] = {{"0.1 ms 10 Gb/s", 0.1e-3, 10e9},
                                {"1 ms 5 Gb/s", 1e-3, 5e9},
                                {"5 ms 2 Gb/s", 5e-3, 2e9},
                                {"10 ms 1 Gb/s", 10e-3, 1e9},
                                {"50 ms 1 Gb/s", 50e-3, 1e9}};

struct net {
  const char* name;
  commodity_run run;
  double measured_s[5];
  int compute_of = -1;  // the net with the same compute; -1: its own first row tells it
};
constexpr auto all_reduce = commodity_exchange::all_reduce;
constexpr net nets[] = {
  {"GPT-3 small fp32, 3 nodes",
   {.depth = 3, .hidden = 768, .layers = 4},
   {5.91, 6.01, 6.07, 7.90, 8.77}},
  {"GPT-3 small fp16, 3 nodes",
   {.depth = 3, .hidden = 768, .layers = 4, .value_bytes = 2},
   {2.25, 2.26, 2.55, 4.01, 4.78}},
  {"GPT-3 XL fp32, 12 nodes",
   {.depth = 12, .hidden = 2048, .layers = 2},
   {15.16, 15.49, 16.80, 22.90, 29.08}},
  {"XL fp32, 4 replicas, central server",
   {.depth = 12, .hidden = 2048, .layers = 2, .replicas = 4},
   {16.17, 17.55, 21.99, 33.39, 37.61},
   2},
  {"XL fp16, 4 replicas, central server",
   {.depth = 12, .hidden = 2048, .layers = 2, .value_bytes = 2, .replicas = 4},
   {5.30, 6.28, 10.88, 18.21, 18.68}},
  {"small fp16, 4 replicas, all-reduce",
   {.depth = 3,
    .hidden = 768,
    .layers = 4,
    .value_bytes = 2,
    .replicas = 4,
    .exchange = all_reduce},
   {2.53, 3.16, 5.59, 10.19, 27.08},
   1},
  {"small fp16, 16 replicas, all-reduce",
   {.depth = 3,
    .hidden = 768,
    .layers = 4,
    .value_bytes = 2,
    .replicas = 16,
    .exchange = all_reduce},
   {2.82, 4.18, 10.06, 19.09, 62.86},
   1},
};

}  // namespace

TEST_CASE("GPipe on shaped links takes what DS3Lab measured", "[sim][published]") {
  commodity_link link;
  std::printf(
    "DS3Lab, GPipe of 64 micro-batches; bulk %.3f of the rate, messages %.2f of that, %.1f "
    "delays a message; compute of each net from its first row\n",
    link.bulk_share, link.message_share, link.delays_a_message);
  std::vector<double> alone, replicated;
  double stage_s[std::size(nets)];
  for (std::size_t k = 0; k < std::size(nets); ++k) {
    auto& n = nets[k];
    auto run = n.run;
    for (int i = 0; i < 5; ++i) {
      run.delay_s = networks[i].delay_s;
      run.bits_per_s = networks[i].bits_per_s;
      bool calibrates = i == 0 && n.compute_of < 0;
      if (calibrates)
        stage_s[k] = value(calibrate(run, n.measured_s[0], link));
      else if (i == 0)
        stage_s[k] = stage_s[n.compute_of];
      run.stage_s = stage_s[k];
      auto said = value(batch_seconds(run, link));
      auto error = said / n.measured_s[i] - 1;
      std::printf("  %-36s %-15s measured %6.2f s, simulated %6.2f s, %+6.1f %%%s\n", n.name,
                  networks[i].name, n.measured_s[i], said, error * 100,
                  calibrates ? " (calibrated)" : "");
      if (!calibrates) (run.replicas > 1 ? replicated : alone).push_back(error);
    }
  }
  auto s = of(alone), r = of(replicated);
  std::printf("  pipeline alone: median %.1f %%, worst %.1f %%\n", s.median * 100, s.worst * 100);
  std::printf("  with replicas: median %.1f %%, worst %.1f %%\n", r.median * 100, r.worst * 100);
  CHECK(s.median <= 0.05);
  CHECK(s.worst <= 0.15);
}

TEST_CASE("Megatron's iterations take what its Table 1 says", "[sim][published]") {
  struct row {
    const char* name;
    megatron_run run;
    double teraflops;  // a GPU
  };
  const row rows[] = {
    {"1.7B", {2304, 24, 24, 1, 1, 1, 16, 32, 1}, 137},
    {"7.5B", {4096, 36, 32, 4, 1, 1, 16, 32, 1}, 142},
    {"39.1B", {8192, 48, 64, 8, 2, 1, 4, 32, 12}, 138},
    {"145.6B", {12288, 80, 96, 8, 8, 2, 2, 24, 48}, 148},
    {"529.6B", {20480, 105, 128, 8, 35, 3, 1, 9, 280}, 163},
  };
  megatron_machine machine;
  std::printf(
    "Megatron Table 1; matrix products at %.3f of the peak, elementwise traffic %.1f times "
    "the activations\n",
    machine.matmul_efficiency, machine.elementwise_traffic);
  std::vector<double> errors;
  for (auto& r : rows) {
    auto gpus = r.run.tensor_parallel * r.run.depth * r.run.replicas;
    auto measured = iteration_flops(r.run) / (gpus * r.teraflops * 1e12);
    auto said = value(iteration_seconds(r.run));
    errors.push_back(said / measured - 1);
    std::printf("  %-7s %5u GPUs: measured %6.2f s, simulated %6.2f s, %+5.1f %%\n", r.name, gpus,
                measured, said, errors.back() * 100);
  }
  auto s = of(errors);
  std::printf("  median %.1f %%, worst %.1f %%\n", s.median * 100, s.worst * 100);
  CHECK(s.median <= 0.04);
  CHECK(s.worst <= 0.08);
}

TEST_CASE("runs that make no schedule are refused", "[sim][published]") {
  CHECK_FALSE(iteration_seconds({.hidden = 64, .layers = 10, .heads = 4, .depth = 4}));
  CHECK_FALSE(iteration_seconds({}));
  CHECK_FALSE(batch_seconds({.depth = 0}));
}
