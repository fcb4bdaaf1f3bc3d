#include "app/config/checks.hpp"

#include "core/layout.hpp"

namespace shoal::app {

namespace {

std::string number(std::uint64_t n) { return std::to_string(n); }

void check_transformer(const core::model_options& m, std::vector<complaint>& out) {
  if (m.dim % m.heads != 0) {
    out.push_back({"model.heads", "model.dim (" + number(m.dim) +
                                    ") is not a multiple of model.heads (" + number(m.heads) +
                                    ")"});
    return;
  }
  if (m.kind == "gpt2" && m.kv_heads != 0)
    out.push_back({"model.kv_heads", "is for model.kind = \"llama\"; leave it at 0"});
  if (m.kind == "llama") {
    if (m.kv_heads != 0 && m.heads % m.kv_heads != 0)
      out.push_back({"model.kv_heads", "model.heads (" + number(m.heads) +
                                         ") is not a multiple of model.kv_heads (" +
                                         number(m.kv_heads) + ")"});
    if (m.dim / m.heads % 2 != 0)
      out.push_back({"model.heads", "rotary embedding turns pairs: model.dim / model.heads (" +
                                      number(m.dim / m.heads) + ") must be even"});
  }
}

void check_data(const core::job_options& job, std::vector<complaint>& out) {
  const auto& kind = job.data.kind;
  bool ours = kind == "text" || kind == "nanogpt" || kind == "llmc";
  if (ours && job.data.path.empty())
    out.push_back(
      {"data.path", "is empty; name a file or folder for data.kind = \"" + kind + "\""});
  if (kind == "text" && job.model.vocab_size < 256)
    out.push_back(
      {"model.vocab_size", "is " + number(job.model.vocab_size) +
                             "; data.kind = \"text\" has 256 tokens, one for each byte"});
  if (ours && job.validation.every != 0 && job.data.validation_fraction == 0)
    out.push_back({"validation.every",
                   "asks for validation, but data.validation_fraction is 0; set one of them"});
}

void check_training(const core::job_options& job, std::vector<complaint>& out) {
  const auto& t = job.training;
  if (t.reduction_leaf > t.micro_batches)
    out.push_back({"training.reduction_leaf", "(" + number(t.reduction_leaf) +
                                                ") is more than training.micro_batches (" +
                                                number(t.micro_batches) + ")"});
  if (job.lr_scheduler.warmup_steps > t.steps)
    out.push_back({"lr_scheduler.warmup_steps", "(" + number(job.lr_scheduler.warmup_steps) +
                                                  ") is more than training.steps (" +
                                                  number(t.steps) + ")"});
}

void check_layout(const core::job_options& job, std::vector<complaint>& out) {
  const auto& p = job.parallelism;
  if (p.nodes_max != 0 && p.nodes_max < p.nodes_min)
    out.push_back({"parallelism.nodes_max", "(" + number(p.nodes_max) +
                                              ") is less than parallelism.nodes_min (" +
                                              number(p.nodes_min) + ")"});
  if (p.nodes_max != 0 && p.depth > p.nodes_max)
    out.push_back({"parallelism.depth", "(" + number(p.depth) + ") needs more nodes than " +
                                          "parallelism.nodes_max (" + number(p.nodes_max) + ")"});
  bool ours = job.model.kind == "gpt2" || job.model.kind == "llama";
  if (ours && p.depth > job.model.layers + 2)
    out.push_back({"parallelism.depth", "(" + number(p.depth) + ") is more than the model's " +
                                          number(job.model.layers + 2) +
                                          " blocks: embedding, layers, head"});
  bool interleaves = p.schedule == "interleaved-1f1b";
  if (interleaves && p.chunks == 1)
    out.push_back({"parallelism.chunks",
                   "(1) leaves interleaved-1f1b nothing to interleave; "
                   "expected 2 or more, or 0 for 2"});
  if (p.chunks != 0 && !interleaves && p.schedule != "auto")
    out.push_back({"parallelism.chunks", "(" + number(p.chunks) + ") is of use only with " +
                                           "parallelism.schedule = \"interleaved-1f1b\" or " +
                                           "\"auto\", not \"" + p.schedule + "\""});
  if (p.schedule == "varuna" && job.training.recompute != core::recompute_rule::always)
    out.push_back({"parallelism.schedule",
                   "(\"varuna\") is an order of forward, recompute and "
                   "backward passes; it needs training.recompute = true"});
  const auto& c = job.churn;
  if (c.nodes_max < c.nodes_min)
    out.push_back(
      {"churn.nodes_max",
       "(" + number(c.nodes_max) + ") is less than churn.nodes_min (" + number(c.nodes_min) + ")"});
  if (job.name.empty() || job.name.find('/') != std::string::npos || job.name.front() == '.')
    out.push_back(
      {"job.name", "names a folder: it must not be empty, start with a dot, or hold a '/'"});
}

}  // namespace

std::vector<complaint> check_job(const core::job_options& job) {
  std::vector<complaint> out;
  if (job.model.kind == "gpt2" || job.model.kind == "llama") check_transformer(job.model, out);
  check_data(job, out);
  check_training(job, out);
  check_layout(job, out);
  return out;
}

}  // namespace shoal::app
