#pragma once
// A job as the rest of the house sees it: every key of a job file, with its default.
//
// The file itself (TOML) is read in src/app; here are only the values, so that machines, simulator
// and trainer need no parser. N = training.micro_batches, m = training.micro_batch_size.

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace shoal::core {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

struct model_options {
  std::string kind = "gpt2";  ///< "gpt2", "llama", or a name that the trainer registered
  std::uint32_t layers = 4;
  std::uint32_t dim = 128;
  std::uint32_t heads = 4;
  std::uint32_t kv_heads = 0;  ///< llama: 0 is `heads`
  std::uint32_t hidden = 0;  ///< of the MLP; 0 is 4 dim (gpt2) or 8/3 dim rounded up to 32 (llama)
  std::uint32_t vocab_size = 256;
  std::uint32_t seq_len = 128;
  double dropout = 0;
  std::map<std::string, std::string> custom;  ///< [model.custom]: for registered models, as text
};

struct data_options {
  std::string kind = "text";  ///< "text" (bytes), "nanogpt", "llmc", or a registered name
  std::string path;           ///< a file, or a folder whose files are read in order of name
  double validation_fraction = 0.1;
  std::map<std::string, std::string> custom;  ///< [data.custom]: for registered data, as text
};

/// Whether stages keep only the inputs of a micro-batch and run it forward again before its
/// backward pass. The last part of a chain never does.
enum class recompute_rule : std::uint8_t {
  never,
  always,
  as_needed,  ///< the planner lets those stages recompute that would not fit otherwise
};

enum class not_finite_policy : std::uint8_t { stop, skip };

struct training_options {
  std::uint32_t steps = 100;
  std::uint32_t micro_batches = 16;    ///< N, a step
  std::uint32_t micro_batch_size = 4;  ///< m, samples
  std::uint32_t reduction_leaf = 0;    ///< micro-batches summed left to right; 0: max(1, N/8)
  double max_norm = 1.0;               ///< of the gradient; 0 does not clip
  std::uint32_t threads = 1;           ///< of a node; part of the bits
  not_finite_policy on_not_finite = not_finite_policy::stop;
  recompute_rule recompute = recompute_rule::never;
};

struct optimizer_options {
  std::string name = "adamw";  ///< "adamw" or "sgd"
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;  ///< on parameters of two or more dimensions
  double momentum = 0;        ///< sgd
};

struct lr_scheduler_options {
  std::uint32_t warmup_steps = 0;
  std::string decay = "cosine";  ///< "cosine" to the last step, or "constant"
  double min_lr_factor = 0.1;
};

struct validation_options {
  std::uint32_t every = 0;  ///< steps; 0 never
  std::uint32_t micro_batches = 8;
};

struct parallelism_options {
  /// A name of `stage_orders` (core/layout.hpp), or "auto": planned at each morph.
  std::string schedule = "1f1b";
  std::uint32_t chunks = 0;     ///< runs of blocks a stage where interleaved; 0: 2
  std::uint32_t depth = 0;      ///< stages of the deepest replica; 0: planned
  std::uint32_t nodes_min = 1;  ///< with fewer the job holds
  std::uint32_t nodes_max = 0;  ///< more are kept as spares; 0: no limit
};

struct checkpoint_options {
  std::string folder;       ///< empty: "checkpoints" in the job's folder
  std::uint32_t every = 0;  ///< steps; 0: only at the end
  std::uint32_t keep_latest_k = 3;
};

struct nodes_options {
  std::uint32_t local = 2;     ///< started by `shoal run`
  byte_count memory{0};        ///< what a node may use; 0: three quarters of the machine's
  nanoseconds mean_life = 4h;  ///< expected until a node is lost; 0: none ever is
};

struct network_options {
  std::string host = "127.0.0.1";  ///< to listen on
  std::uint16_t control_port = 0;  ///< of the supervisor; 0: any free
  byte_count frame_bytes_max{1ull << 30};
};

/// One knob, `failure`; the others derive from it unless set.
struct timeout_options {
  nanoseconds failure = 2s;    ///< silence after which a node is dead
  nanoseconds gather = 50ms;   ///< further losses within this join the first
  nanoseconds answer = 10s;    ///< a halt or commit must be answered within this
  nanoseconds prepare = 60s;   ///< moving the state must be done within this
  nanoseconds orphan = 10min;  ///< how long nodes live without a supervisor
};

struct emulate_options {
  byte_rate rate{0};        ///< of each link and direction; 0: as the network is
  nanoseconds delay = 0ns;  ///< one way
};

/// Local nodes that `shoal run` takes away and adds, for experiments and tests: real signals to
/// real processes.
enum class churn_action : std::uint8_t {
  kill,   ///< SIGKILL: gone without a word
  leave,  ///< SIGTERM: a planned leave
  join,   ///< a new process knocks
};
struct churn_event {
  std::uint32_t at_step = 0;  ///< once this step is decided
  churn_action action = churn_action::kill;
  std::uint32_t count = 1;  ///< nodes
};
struct churn_options {
  std::vector<churn_event> events;  ///< [[churn.event]], in order of at_step
  std::uint64_t seed = 1;           ///< of the random events
  std::uint32_t random_events = 0;  ///< that many more, at random moments, some during a morph
  std::uint32_t nodes_min = 1;      ///< random events keep at least so many local nodes
  std::uint32_t nodes_max = 6;      ///< and at most so many
  std::uint32_t steps_between = 4;  ///< mean distance of random events
};

struct job_options {
  std::string name = "shoal";
  std::string folder;  ///< of the run: ledger, metrics, checkpoints; empty: runs/NAME
  std::uint64_t seed = 1;
  model_options model;
  data_options data;
  training_options training;
  optimizer_options optimizer;
  lr_scheduler_options lr_scheduler;
  validation_options validation;
  parallelism_options parallelism;
  checkpoint_options checkpoint;
  nodes_options nodes;
  network_options network;
  timeout_options timeouts;
  emulate_options emulate;
  churn_options churn;
};

/// The leaf in force: training.reduction_leaf, or its default.
std::uint32_t reduction_leaf(const training_options& training);

/// The learning rate of a step (1-based): linear warm-up from 0, then constant or cosine down to
/// lr * min_lr_factor at the last step. Pure double arithmetic, the same on every node.
double learning_rate(const job_options& job, std::uint64_t step);

/// What the lead multiplies gradients with: 1, or max_norm / norm when the norm is larger.
double clip_factor(double max_norm, double norm);

/// Whether weights after `step` are validated, or written to a checkpoint.
bool validates_after(const job_options& job, std::uint64_t step);
bool checkpoints_after(const job_options& job, std::uint64_t step);

}  // namespace shoal::core
