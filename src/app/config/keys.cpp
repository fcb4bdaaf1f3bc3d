#include "app/config/keys.hpp"

#include <set>

#include "app/config/churn_key.hpp"
#include "core/layout.hpp"

namespace shoal::app {

namespace {

using namespace std::chrono_literals;

#define FIELD(path) \
  [](auto& job) -> auto& { return job.path; }

constexpr std::uint64_t many = 1'000'000'000, seeds = INT64_MAX;
constexpr auto bits = role::bits, other = role::other;

void add_model(std::vector<key>& t) {
  t.push_back(text("model.kind", bits, FIELD(model.kind),
                   "\"gpt2\", \"llama\", or a name that the trainer registered"));
  t.push_back(integer("model.layers", bits, 1, core::block_count_max - 12, FIELD(model.layers),
                      "transformer layers"));
  t.push_back(
    integer("model.dim", bits, 1, 1 << 20, FIELD(model.dim), "width of the residual stream"));
  t.push_back(integer("model.heads", bits, 1, 1 << 16, FIELD(model.heads), "attention heads"));
  t.push_back(integer("model.kv_heads", bits, 0, 1 << 16, FIELD(model.kv_heads),
                      "llama: heads of keys and values; 0: as many as heads"));
  t.push_back(integer("model.hidden", bits, 0, 1 << 24, FIELD(model.hidden),
                      "width inside the MLP; 0: 4 dim (gpt2), 8/3 dim rounded up to 32 (llama)"));
  t.push_back(integer("model.vocab_size", bits, 1, 1 << 24, FIELD(model.vocab_size), "tokens"));
  t.push_back(integer("model.seq_len", bits, 1, 1 << 20, FIELD(model.seq_len), "tokens a sample"));
  t.push_back(number("model.dropout", bits, 0, 1, FIELD(model.dropout),
                     "probability; its random numbers do not depend on the layout", true));
}

void add_data(std::vector<key>& t) {
  t.push_back(
    text("data.kind", bits, FIELD(data.kind),
         "\"text\" (bytes), \"nanogpt\", \"llmc\", or a name that the trainer registered"));
  t.push_back(text("data.path", other, FIELD(data.path),
                   "a file, or a folder whose files are read in order of name"));
  t.push_back(number("data.validation_fraction", bits, 0, 1, FIELD(data.validation_fraction),
                     "of the data, kept for validation", true));
}

void add_training(std::vector<key>& t) {
  t.push_back(integer("training.steps", bits, 1, many, FIELD(training.steps), "optimizer steps"));
  t.push_back(integer("training.micro_batches", bits, 1, core::micro_batch_count_max,
                      FIELD(training.micro_batches), "N, a step, whatever the layout"));
  t.push_back(integer("training.micro_batch_size", bits, 1, 1 << 20,
                      FIELD(training.micro_batch_size), "m, samples; a step takes N m samples"));
  t.push_back(integer("training.reduction_leaf", bits, 0, core::micro_batch_count_max,
                      FIELD(training.reduction_leaf),
                      "micro-batches added left to right below the tree; 0: N/8, at least 1"));
  t.push_back(number("training.max_norm", bits, 0, 1e12, FIELD(training.max_norm),
                     "the gradient is clipped to this norm; 0: not clipped"));
  t.push_back(integer("training.threads", bits, 1, 256, FIELD(training.threads),
                      "of a node's kernels; they decide the order of additions"));
  t.push_back(
    choice("training.on_not_finite", bits, {"stop", "skip"}, FIELD(training.on_not_finite),
           "what a NaN or infinite loss or gradient does: end the job, or skip the step"));
  t.push_back(boolean_or("training.recompute", other, {"auto"}, FIELD(training.recompute),
                         "keep only the inputs of stages and run forward again: less memory, same "
                         "bits; \"auto\": stages that would not fit otherwise"));
  t.push_back(choice("optimizer.name", bits, {"adamw", "sgd"}, FIELD(optimizer.name), "the rule"));
  t.push_back(
    number("optimizer.lr", bits, 0, 1e6, FIELD(optimizer.lr), "learning rate at its highest"));
  t.push_back(number("optimizer.beta1", bits, 0, 1, FIELD(optimizer.beta1), "adamw", true));
  t.push_back(number("optimizer.beta2", bits, 0, 1, FIELD(optimizer.beta2), "adamw", true));
  t.push_back(number("optimizer.eps", bits, 0, 1, FIELD(optimizer.eps), "adamw"));
  t.push_back(number("optimizer.weight_decay", bits, 0, 1e3, FIELD(optimizer.weight_decay),
                     "on parameters of two or more dimensions"));
  t.push_back(number("optimizer.momentum", bits, 0, 1, FIELD(optimizer.momentum), "sgd", true));
  t.push_back(integer("lr_scheduler.warmup_steps", bits, 0, many, FIELD(lr_scheduler.warmup_steps),
                      "steps of linear rise from 0"));
  t.push_back(choice("lr_scheduler.decay", bits, {"cosine", "constant"}, FIELD(lr_scheduler.decay),
                     "after the rise"));
  t.push_back(number("lr_scheduler.min_lr_factor", bits, 0, 1, FIELD(lr_scheduler.min_lr_factor),
                     "cosine ends at lr times this"));
  t.push_back(integer("validation.every", other, 0, many, FIELD(validation.every),
                      "steps between validation losses; 0: never"));
  t.push_back(integer("validation.micro_batches", other, 1, core::micro_batch_count_max,
                      FIELD(validation.micro_batches), "of a validation loss"));
}

std::vector<std::string_view> schedules() {
  std::vector<std::string_view> names;
  for (auto order : core::stage_orders) names.push_back(core::to_string(order));
  names.push_back("auto");
  return names;
}

void add_layout(std::vector<key>& t) {
  t.push_back(choice("parallelism.schedule", other, schedules(), FIELD(parallelism.schedule),
                     "order of forward and backward passes in a stage; auto: planned"));
  t.push_back(integer("parallelism.chunks", other, 0, core::block_count_max,
                      FIELD(parallelism.chunks),
                      "runs of blocks a stage in interleaved-1f1b; 0: 2; 1 keeps auto from it"));
  t.push_back(integer("parallelism.depth", other, 0, core::block_count_max,
                      FIELD(parallelism.depth), "stages of the deepest replica; 0: planned"));
  t.push_back(integer("parallelism.nodes_min", other, 1, core::node_count_max,
                      FIELD(parallelism.nodes_min), "with fewer nodes the job holds and waits"));
  t.push_back(integer("parallelism.nodes_max", other, 0, core::node_count_max,
                      FIELD(parallelism.nodes_max), "more nodes are kept as spares; 0: no limit"));
  t.push_back(text("checkpoint.folder", other, FIELD(checkpoint.folder),
                   "empty: \"checkpoints\" in the job's folder"));
  t.push_back(integer("checkpoint.every", other, 0, many, FIELD(checkpoint.every),
                      "steps; 0: only after the last"));
  t.push_back(integer("checkpoint.keep_latest_k", other, 0, 1'000'000,
                      FIELD(checkpoint.keep_latest_k),
                      "older checkpoints are deleted; 0: none is"));
}

void add_machines(std::vector<key>& t) {
  constexpr nanoseconds none{0}, day = 24h;
  t.push_back(integer("nodes.local", other, 0, 256, FIELD(nodes.local), "started by `shoal run`"));
  t.push_back(bytes("nodes.memory", FIELD(nodes.memory),
                    "what a node may use; 0: three quarters of the machine's"));
  t.push_back(duration("nodes.mean_life", none, 10'000 * day, FIELD(nodes.mean_life),
                       "expected until a node is lost; the shorter, the more a second holder of "
                       "each block is worth; 0: none is lost"));
  t.push_back(text("network.host", other, FIELD(network.host), "address to listen on"));
  t.push_back(integer("network.control_port", other, 0, 65535, FIELD(network.control_port),
                      "of the supervisor; 0: any that is free"));
  t.push_back(bytes("network.frame_bytes_max", FIELD(network.frame_bytes_max),
                    "a longer frame from a peer is a breach of protocol"));
  t.push_back(duration("timeouts.failure", 10ms, day, FIELD(timeouts.failure),
                       "silence after which a node is dead"));
  t.push_back(duration("timeouts.gather", none, day, FIELD(timeouts.gather),
                       "further losses within this join the first"));
  t.push_back(duration("timeouts.answer", 10ms, day, FIELD(timeouts.answer),
                       "a halt or commit must be answered within this"));
  t.push_back(duration("timeouts.prepare", 10ms, day, FIELD(timeouts.prepare),
                       "moving the state must be done within this"));
  t.push_back(duration("timeouts.orphan", 10ms, day, FIELD(timeouts.orphan),
                       "how long nodes live without a supervisor"));
  t.push_back(rate("emulate.rate", FIELD(emulate.rate), "of each link and direction"));
  t.push_back(duration("emulate.delay", none, 10s, FIELD(emulate.delay), "of each link, one way"));
}

void add_churn(std::vector<key>& t) {
  t.push_back(churn_event_key());
  t.push_back(integer("churn.seed", other, 0, seeds, FIELD(churn.seed), "of the random events"));
  t.push_back(integer("churn.random_events", other, 0, 100'000, FIELD(churn.random_events),
                      "that many besides the listed ones, at random moments"));
  t.push_back(integer("churn.nodes_min", other, 0, core::node_count_max, FIELD(churn.nodes_min),
                      "random events keep at least so many local nodes"));
  t.push_back(integer("churn.nodes_max", other, 1, core::node_count_max, FIELD(churn.nodes_max),
                      "random events keep at most so many local nodes"));
  t.push_back(integer("churn.steps_between", other, 1, many, FIELD(churn.steps_between),
                      "mean distance of random events"));
}

std::vector<key> make_keys() {
  std::vector<key> t;
  t.push_back(text("job.name", other, FIELD(name), "for people, and for the folder"));
  t.push_back(text("job.folder", other, FIELD(folder),
                   "of the run: ledger, metrics, checkpoints; empty: runs/NAME"));
  t.push_back(integer("job.seed", bits, 0, seeds, FIELD(seed),
                      "of initial values, sample order and dropout"));
  add_model(t);
  add_data(t);
  add_training(t);
  add_layout(t);
  add_machines(t);
  add_churn(t);
  return t;
}

constexpr std::string_view model_custom = "model.custom.", data_custom = "data.custom.";

std::set<std::string> make_tables() {
  std::set<std::string> tables{"model.custom", "data.custom"};
  for (auto& k : keys()) tables.emplace(k.name.substr(0, k.name.rfind('.')));
  return tables;
}

const std::set<std::string>& tables() {
  static const auto all = make_tables();
  return all;
}

}  // namespace

const std::vector<key>& keys() {
  static const auto all = make_keys();
  return all;
}

const key* find_key(std::string_view name) {
  for (auto& k : keys())
    if (k.name == name) return &k;
  return nullptr;
}

custom_place find_custom(job_options& job, std::string_view name) {
  if (name.starts_with(model_custom) && name.size() > model_custom.size())
    return {&job.model.custom, std::string(name.substr(model_custom.size()))};
  if (name.starts_with(data_custom) && name.size() > data_custom.size())
    return {&job.data.custom, std::string(name.substr(data_custom.size()))};
  return {};
}

bool is_table(std::string_view name) {
  return tables().count(std::string(name)) > 0 || name.starts_with(model_custom) ||
         name.starts_with(data_custom);
}

std::vector<std::string> key_names() {
  std::vector<std::string> names;
  for (auto& k : keys()) names.emplace_back(k.name);
  return names;
}

std::vector<std::string> table_names() { return {tables().begin(), tables().end()}; }

}  // namespace shoal::app
