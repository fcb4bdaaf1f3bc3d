#pragma once
// Other people's clusters, for the pipeline simulator: what was measured there is what it must say.
//
//   Megatron-LM, SC'21 (arXiv 2104.04473), Table 1: A100s, NVLink inside a server, 200 Gb/s a GPU
//   DS3Lab, "Decentralized training of foundation models": V100s on links shaped by tc, GPipe
//
// A model of the machine, not a fit of rows: a run is told by what its authors told of it, and the
// few constants below hold for all runs.

#include <cstdint>

#include "base/result.hpp"

namespace shoal::sim {

/// One training run of Megatron-LM: sequence 2048, vocabulary 51200, half precision, full
/// recomputation, gradients of all micro-batches reduced at the end.
struct megatron_run {
  std::uint32_t hidden = 0;
  std::uint32_t layers = 0;
  std::uint32_t heads = 0;
  std::uint32_t tensor_parallel = 1;
  std::uint32_t depth = 1;             ///< p
  std::uint32_t chunks = 1;            ///< v, virtual stages a GPU
  std::uint32_t micro_batch_size = 1;  ///< b
  std::uint32_t replicas = 1;          ///< d
  std::uint32_t micro_batches = 1;     ///< m, of a replica
};

/// An A100 server, as Megatron saw it. The first two are calibrated on the five rows of Table 1
/// that are printed in the tests; the rest are data sheets, less what nobody reaches.
struct megatron_machine {
  double matmul_efficiency = 0.625;  ///< of the peak, in matrix products
  double elementwise_traffic = 4.3;  ///< times the bytes of a layer's activations (34 + 5as/h)
  double peak_flops = 312e12;
  double memory_bytes_per_s = 1.6e12;  ///< 80 % of 2.0e12
  double nvlink_bytes_per_s = 230e9;   ///< of an all-reduce
  double network_bytes_per_s = 25e9;   ///< 200 Gb/s a GPU
  double network_latency_s = 5e-6;
};

/// Seconds of one iteration. `errc::config` for numbers that make no schedule.
result<double> iteration_seconds(const megatron_run& run, const megatron_machine& machine = {});

/// Floating-point operations of one iteration with full recomputation, all GPUs together (their
/// equation for F).
double iteration_flops(const megatron_run& run);

/// How DS3Lab's replicas add up their gradients: when a stage has done its last backward, and
/// tensor after tensor, as their program of spring 2022 did.
enum class commodity_exchange : std::uint8_t {
  central_server,  ///< NCCL reduces all to the first replica, then broadcasts all from there
  all_reduce,      ///< NCCL all-reduces each: matrices around a ring, vectors over a tree
};

/// One GPipe batch of DS3Lab's: like stages on a chain of nodes, micro-batches of one sample of
/// 2048 tokens; the first stage has the embeddings too (28,996 words, BERT's).
struct commodity_run {
  std::uint32_t depth = 1;
  std::uint32_t micro_batches = 64;
  double stage_s = 0;  ///< forward and backward of a micro-batch on one node
  double hidden = 0;
  double layers = 0;       ///< of a stage
  double value_bytes = 4;  ///< of activations and gradients
  double delay_s = 0;      ///< one way, as shaped
  double bits_per_s = 0;   ///< as shaped
  std::uint32_t replicas = 1;
  commodity_exchange exchange = commodity_exchange::central_server;
};

/// How NCCL's sockets used the shaped links; all three from the authors' own probe: 64 MiB take 55
/// ms at 10 Gb/s and 113 ms with 10 ms of delay; messages of some MB get 7 % less than bulk.
struct commodity_link {
  double bulk_share = 0.976;      ///< of the shaped rate
  double message_share = 0.93;    ///< of the bulk rate
  double delays_a_message = 5.8;  ///< round trips until a connection is at its rate again
};

/// Seconds of one batch.
result<double> batch_seconds(const commodity_run& run, const commodity_link& link = {});

/// The `stage_s` with which `batch_seconds` says `measured_s`: a net's compute is known from its
/// fastest network.
result<double> calibrate(commodity_run run, double measured_s, const commodity_link& link = {});

}  // namespace shoal::sim
