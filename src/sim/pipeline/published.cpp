#include "sim/pipeline/published.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/pipeline/simulation.hpp"
#include "core/schedule/make_plan.hpp"

namespace shoal::sim {

namespace {

constexpr double sequence = 2048, vocabulary = 51200, bert_words = 28996;

std::int64_t ns(double seconds) { return std::llround(seconds * 1e9); }

double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

/// What a GPU does for one micro-batch.
struct megatron_times {
  double layer_s = 0;   ///< forward, recompute and backward of one layer
  double logits_s = 0;  ///< of the output layer
};

megatron_times times_of(const megatron_run& run, const megatron_machine& machine) {
  double h = run.hidden, b = run.micro_batch_size, t = run.tensor_parallel;
  auto flops = 96 * b * sequence * h * h;
  auto rate = machine.peak_flops * machine.matmul_efficiency * t;
  auto elements = b * sequence * h;
  megatron_times times;
  times.layer_s = flops * (1 + sequence / (6 * h)) / rate;
  times.layer_s += machine.elementwise_traffic * elements * (34 + 5 * run.heads * sequence / h) /
                   t / machine.memory_bytes_per_s;
  // Two all-reduces each in forward, recompute and backward, of half-precision activations.
  times.layer_s += 12 * (t - 1) / t * elements * 2 / machine.nvlink_bytes_per_s;
  times.logits_s = flops * vocabulary / (16 * h) / rate;
  return times;
}

double parameters_of(const megatron_run& run) {
  double h = run.hidden, l = run.layers;
  return 12 * l * h * h * (1 + 13 / (12 * h) + (vocabulary + sequence) / (12 * l * h));
}

result<double> pipeline_seconds(const megatron_run& run, const megatron_machine& machine) {
  auto virtual_stages = run.depth * run.chunks;
  auto plan = core::make_plan({.name = run.chunks > 1 ? "interleaved-1f1b" : "1f1b",
                               .ranks = run.depth,
                               .chunks = run.chunks > 1 ? run.chunks : 0,
                               .micro_batches = run.micro_batches});
  if (!plan) return plan.error();
  auto times = times_of(run, machine);
  core::simulation_costs costs;
  for (std::uint32_t s = 0; s < virtual_stages; ++s) {
    auto whole = times.layer_s * run.layers / virtual_stages;
    if (s + 1 == virtual_stages) whole += times.logits_s;
    // Of four units one is forward; recompute is part of the way back.
    costs.stages.push_back(
      {.forward_ns = ns(whole / 4),
       .backward_ns = ns(whole * 3 / 4),
       .input_bytes = static_cast<std::uint64_t>(run.micro_batch_size * sequence * run.hidden * 2 /
                                                 run.tensor_parallel)});
  }
  costs.link = core::link_table::flat(ns(machine.network_latency_s), machine.network_bytes_per_s);
  TRY(auto ran, core::simulate(*plan, costs));
  return seconds(ran.pipeline_ns);
}

double bulk_bytes_per_s(const commodity_run& run, const commodity_link& link) {
  return run.bits_per_s / 8 * link.bulk_share;
}

/// What a stage's replicas take for its gradients. A reduce or a broadcast is a chain, and the next
/// one begins on its first node while the last one still runs on the others: its hops count once.
double exchange_s(const commodity_run& run, const commodity_link& link, bool has_embeddings) {
  if (run.replicas < 2) return 0;
  double k = run.replicas, h = run.hidden, rate = bulk_bytes_per_s(run, link);
  // Attention: four matrices, four biases; feed-forward: two, of four times the width; two norms.
  double matrices = 6 * run.layers, vectors = 10 * run.layers;
  double matrix_bytes = 12 * h * h * run.layers * run.value_bytes;
  double vector_bytes = 13 * h * run.layers * run.value_bytes;
  if (has_embeddings) {
    matrices += 2;
    matrix_bytes += (bert_words + sequence) * h * run.value_bytes;
  }
  if (run.exchange == commodity_exchange::central_server)
    return 2 * (matrix_bytes + vector_bytes) / rate + 2 * (k - 1) * run.delay_s;
  auto ring_s = 2 * (k - 1) / k * matrix_bytes / rate + matrices * 2 * (k - 1) * run.delay_s;
  auto tree_s = 2 * vector_bytes / rate + vectors * 2 * std::ceil(std::log2(k)) * run.delay_s;
  return ring_s + tree_s;
}

}  // namespace

double iteration_flops(const megatron_run& run) {
  double h = run.hidden, l = run.layers;
  double samples = static_cast<double>(run.micro_batch_size) * run.micro_batches * run.replicas;
  return 96 * samples * sequence * l * h * h * (1 + sequence / (6 * h) + vocabulary / (16 * l * h));
}

result<double> iteration_seconds(const megatron_run& run, const megatron_machine& machine) {
  if (run.layers == 0 || run.hidden == 0 || run.depth == 0 || run.chunks == 0 ||
      run.tensor_parallel == 0 || run.replicas == 0 || run.layers % (run.depth * run.chunks) != 0)
    return {errc::config, std::to_string(run.layers) + " layers on " + std::to_string(run.depth) +
                            " x " + std::to_string(run.chunks) +
                            " virtual stages: expected as many on each"};
  TRY(auto pipeline_s, pipeline_seconds(run, machine));
  auto held = parameters_of(run) / run.tensor_parallel / run.depth;
  double d = run.replicas;
  // Half-precision gradients around a ring when all are done; then Adam reads and writes 16 bytes a
  // parameter.
  auto exchange_s = 2 * (d - 1) / d * held * 2 / machine.network_bytes_per_s;
  auto optimizer_s = held * 16 * 2 / machine.memory_bytes_per_s;
  return pipeline_s + exchange_s + optimizer_s;
}

result<double> batch_seconds(const commodity_run& run, const commodity_link& link) {
  auto plan =
    core::make_plan({.name = "gpipe", .ranks = run.depth, .micro_batches = run.micro_batches});
  if (!plan) return plan.error();
  core::simulation_costs costs;
  costs.stages.assign(run.depth, {.forward_ns = ns(run.stage_s / 3),
                                  .backward_ns = ns(run.stage_s * 2 / 3),
                                  .input_bytes = static_cast<std::uint64_t>(sequence * run.hidden *
                                                                            run.value_bytes)});
  costs.link = core::link_table::flat(ns(run.delay_s * link.delays_a_message),
                                      bulk_bytes_per_s(run, link) * link.message_share);
  TRY(auto ran, core::simulate(*plan, costs));
  double end_s = 0;
  for (std::uint32_t s = 0; s < run.depth; ++s)
    end_s = std::max(end_s, seconds(ran.replicas[0][s].last_ns) + exchange_s(run, link, s == 0));
  return end_s;
}

result<double> calibrate(commodity_run run, double measured_s, const commodity_link& link) {
  double low = 0, high = measured_s;
  for (int i = 0; i < 40; ++i) {
    run.stage_s = (low + high) / 2;
    TRY(auto said_s, batch_seconds(run, link));
    (said_s > measured_s ? high : low) = run.stage_s;
  }
  return low;
}

}  // namespace shoal::sim
