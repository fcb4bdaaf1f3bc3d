#include "torch/profiler.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/ATen.h>

#include "base/assert.hpp"
#include "core/plan/model_profile.hpp"
#include "core/reduction/tree.hpp"
#include "core/samples/samples.hpp"
#include "torch/block_runtime.hpp"
#include "torch/errors.hpp"
#include "torch/memory_meter.hpp"
#include "torch/threads.hpp"

namespace shoal::engine {

namespace {

using clock = std::chrono::steady_clock;

// Blocks shorter than this are overhead, and their ratio may be anything.
constexpr double small_s = 200e-6;
constexpr int doubtful_rounds = 3;
// The micro-batch of a small step that is added to sums that are there.
constexpr micro_batch_index counted = 1;

double seconds_since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

std::string text_of(const std::vector<tensor_spec>& specs) {
  std::string text;
  for (auto& s : specs) {
    text += s.floating ? "|f" : "|i";
    for (auto d : s.shape) text += std::to_string(d) + ",";
  }
  return text;
}

/// Blocks with equal keys run the same kernels on the same shapes, and can stand for each other in
/// the chain. The ends of the chain, and what changes shapes, are like nothing else.
std::string key_of(const chain& model, block_index at, const std::vector<tensor_spec>& inputs,
                   std::int64_t size) {
  auto& b = *model[at];
  auto in = text_of(inputs), out = text_of(b.outputs(size));
  if (at == 0 || at + 1 == model.size() || in != out) return std::to_string(at);
  auto key = std::to_string(b.work(size)) + in;
  for (auto& p : b.parameters()) key += "|p" + text_of({{p.shape, true}});
  return key;
}

std::uint64_t bytes_of(const tensors& all) {
  std::uint64_t bytes = 0;
  for (auto& t : all) bytes += t.nbytes();
  return bytes;
}

/// One distinct block and what was seen of it.
struct probe {
  std::unique_ptr<block_runtime> runtime;
  std::vector<double> forward, backward, optimizer;
  std::uint64_t stash_bytes = 0, input_bytes = 0, workspace_bytes = 0;

  void forget_times() {
    for (auto* times : {&forward, &backward, &optimizer}) times->clear();
  }
};

/// The model, its distinct blocks once.
class rig {
public:
  rig(const core::job_options& job, const chain& model, const dataset& data)
    : job_(&job),
      model_(&model),
      data_(&data),
      sums_(core::accumulate({counted + 1, counted + 1}, {0, counted + 1})) {
    std::map<std::string, std::size_t> known;
    std::vector<tensor_spec> inputs;
    auto size = static_cast<std::int64_t>(job.training.micro_batch_size);
    for (block_index b = 0; b < model.size(); ++b) {
      auto key = key_of(model, b, inputs, size);
      auto [at, fresh] = known.emplace(key, probes_.size());
      probe_of_.push_back(at->second);
      if (fresh) {
        probes_.push_back({std::make_unique<block_runtime>(job, *model[b], b)});
        probes_.back().runtime->initialize();
      }
      inputs = model[b]->outputs(size);
    }
  }

  const std::vector<std::size_t>& probe_of() const { return probe_of_; }
  std::vector<probe>& probes() { return probes_; }

  /// The same once, counting bytes instead of time. First, as `meter` counts only what is allocated
  /// in its life.
  void weigh(memory_meter& meter) {
    meter_ = &meter;
    pass(0);
    meter_ = nullptr;
  }

  /// A small step: a micro-batch that begins the sums, and one that is added to them, which is
  /// what nearly all micro-batches of a step do, and counts.
  void pass(std::uint32_t number) {
    for (micro_batch_index g = 0; g <= counted; ++g) {
      auto sample = (number * (counted + 1) + g) % job_->training.micro_batches;
      auto batch = data_->get(core::samples_of(order(), step_id{1}, sample));
      forward_and_backward(batch, g);
    }
    for (auto& p : probes_) step(p);
  }

private:
  core::sample_order order() const {
    return {job_->seed, data_->size(), job_->training.micro_batches,
            job_->training.micro_batch_size};
  }

  static tensors likeness(const tensors& outputs) {
    tensors all;
    for (auto& o : outputs)
      all.push_back(o.is_floating_point() ? at::full_like(o.detach(), 1e-4) : at::Tensor());
    return all;
  }

  void forward_and_backward(const micro_batch& batch, micro_batch_index g) {
    tensors boundary;
    std::vector<forward_record> records;
    for (auto& p : probes_) {
      records.push_back(forward(p, std::move(boundary), batch, g));
      boundary = records.back().outputs;
    }
    boundary.clear();
    for (auto i = probes_.size(); i-- > 0;) {
      // A block of the middle gets a gradient of its outputs' shape whoever stands behind it.
      auto gradients = i + 1 == probes_.size() ? tensors{} : likeness(records[i].outputs);
      backward(probes_[i], std::move(records[i]), std::move(gradients), g);
      records.pop_back();
    }
  }

  forward_record forward(probe& p, tensors inputs, const micro_batch& batch, micro_batch_index g) {
    auto before = begin_weighing();
    auto begin = clock::now();
    auto record = p.runtime->forward(std::move(inputs), &batch, step_id{1}, g);
    if (g != counted) return record;
    p.forward.push_back(seconds_since(begin));
    if (meter_ == nullptr) return record;
    p.input_bytes = bytes_of(record.inputs);
    // Outputs are the next block's input, and counted there.
    auto kept = meter_->live() - before - static_cast<std::int64_t>(bytes_of(record.outputs));
    p.stash_bytes = p.input_bytes + static_cast<std::uint64_t>(std::max<std::int64_t>(kept, 0));
    note_workspace(p, meter_->live());
    return record;
  }

  void backward(probe& p, forward_record record, tensors gradients, micro_batch_index g) {
    auto before = begin_weighing();
    auto begin = clock::now();
    (void)p.runtime->backward(std::move(record), std::move(gradients), core::actions_of(sums_, g));
    if (g != counted) return;
    p.backward.push_back(seconds_since(begin));
    if (meter_ != nullptr) note_workspace(p, before);
  }

  std::int64_t begin_weighing() {
    if (meter_ == nullptr) return 0;
    meter_->restart_peak();
    return meter_->live();
  }

  /// What was live at the worst moment beyond `kept`.
  void note_workspace(probe& p, std::int64_t kept) const {
    auto more = std::max<std::int64_t>(meter_->peak() - kept, 0);
    p.workspace_bytes = std::max(p.workspace_bytes, static_cast<std::uint64_t>(more));
  }

  void step(probe& p) {
    p.runtime->set_total(p.runtime->slot(sums_.slots[0]));
    auto begin = clock::now();
    p.runtime->apply(step_id{1}, 0, 1);
    p.optimizer.push_back(seconds_since(begin));
  }

  const core::job_options* job_;
  const chain* model_;
  const dataset* data_;
  memory_meter* meter_ = nullptr;  // in the pass that counts bytes
  core::accumulation sums_;
  std::vector<probe> probes_;
  std::vector<std::size_t> probe_of_;  // by block
};

bool is_doubtful(const probe& p) {
  auto forward = robust_mean(p.forward).mean, backward = robust_mean(p.backward).mean;
  return forward > small_s && !core::is_likely(forward, backward);
}

bool is_sharp(const probe& p, double half_width_max) {
  for (auto* times : {&p.forward, &p.backward})
    if (robust_mean(*times).relative_half_width() > half_width_max) return false;
  return true;
}

void measure(rig& on, const profile_options& options, const profile_callback& on_pass) {
  std::uint32_t number = 0;
  for (int round = 0; round < doubtful_rounds; ++round) {
    for (std::uint32_t i = 0; i < options.warm_up; ++i) on.pass(number++);
    for (auto& p : on.probes()) p.forget_times();
    for (std::uint32_t i = 1; i <= options.passes_max; ++i) {
      on.pass(number++);
      if (on_pass) on_pass(i, options.passes_max);
      if (i >= options.passes_min && std::ranges::all_of(on.probes(), [&](auto& p) {
            return is_sharp(p, options.half_width_max);
          }))
        break;
    }
    if (std::ranges::none_of(on.probes(), is_doubtful)) return;
  }
}

}  // namespace

result<std::vector<measured_block>> profile(const core::job_options& job, const chain& model,
                                            const dataset& data, const profile_options& options,
                                            const profile_callback& on_pass) {
  SHOAL_ASSERT(!model.empty() && options.passes_min >= 1 &&
               options.passes_max >= options.passes_min);
  try {
    configure_threads(job.training);
    std::optional<memory_meter> meter(std::in_place);
    rig on(job, model, data);
    on.weigh(*meter);
    meter.reset();  // it costs a little time
    measure(on, options, on_pass);
    std::vector<measured_block> out;
    for (block_index b = 0; b < model.size(); ++b) {
      auto& p = on.probes()[on.probe_of()[b]];
      out.push_back({.name = model[b]->name(),
                     .measured_as = p.runtime->index(),
                     .forward = robust_mean(p.forward),
                     .backward = robust_mean(p.backward),
                     .optimizer = robust_mean(p.optimizer),
                     .parameter_bytes = p.runtime->parameter_bytes(),
                     .state_bytes = p.runtime->state_bytes(),
                     .stash_bytes = p.stash_bytes,
                     .input_bytes = p.input_bytes,
                     .workspace_bytes = p.workspace_bytes});
    }
    return out;
  } catch (const std::exception& e) {
    return in("profile", error_of(e));
  }
}

}  // namespace shoal::engine
