#include "unit/torch/helpers.hpp"

#include <array>
#include <cstring>

#include "torch/threads.hpp"

namespace shoal::engine::test {

core::job_options small_job(const std::string& kind, double dropout) {
  core::job_options job;
  job.seed = 7;
  job.model.kind = kind;
  job.model.layers = 2;
  job.model.dim = 16;
  job.model.heads = 2;
  job.model.vocab_size = 12;
  job.model.seq_len = 6;
  job.model.dropout = dropout;
  job.training.micro_batches = 6;
  job.training.micro_batch_size = 2;
  job.training.steps = 3;
  return job;
}

micro_batch small_data::make(std::span<const std::uint64_t> samples, std::uint64_t first) const {
  auto rows = static_cast<std::int64_t>(samples.size()), columns = std::int64_t{job_.model.seq_len};
  micro_batch batch{at::empty({rows, columns}, at::kLong), at::empty({rows, columns}, at::kLong)};
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      auto token = [&](std::int64_t i) {
        auto sample = samples[static_cast<std::size_t>(r)];
        return static_cast<std::int64_t>(
          ((first + sample) * 3 + static_cast<std::uint64_t>(i * i)) % job_.model.vocab_size);
      };
      batch.inputs[r][c] = token(c);
      batch.targets[r][c] = token(c + 1);
    }
  return batch;
}

whole_model::whole_model(const core::job_options& of) : job(of), model(must_make(of.model)) {
  configure_threads(job.training);  // idle threads that spin would make the tests slow
  for (block_index b = 0; b < model.size(); ++b) {
    blocks.push_back(std::make_unique<block_runtime>(job, *model[b], b));
    blocks.back()->initialize();
  }
}

float whole_model::train(const micro_batch& data, step_id step, micro_batch_index g,
                         const std::vector<core::reduction_action>& actions) {
  std::vector<forward_record> records;
  tensors boundary;
  for (auto& b : blocks) {
    records.push_back(b->forward(boundary, &data, step, g));
    boundary = records.back().outputs;
  }
  auto loss = boundary[0].item<float>();
  boundary.clear();
  for (auto b = blocks.size(); b-- > 0;)
    boundary = blocks[b]->backward(std::move(records[b]), std::move(boundary), actions);
  return loss;
}

chain must_make(const core::model_options& options) {
  auto made = make_model({}, options);
  if (!made) FAIL(made.error().text);
  return std::move(made).value();
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  auto x = a.contiguous(), y = b.contiguous();
  return x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type() &&
         std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

micro_batch batch_of(const core::job_options& job, micro_batch_index g) {
  return small_data(job).get(std::array<std::uint64_t, 2>{2 * g, 2 * g + 1});
}

tensors parameters_of(const block_runtime& block) {
  tensors found;
  auto state = block.copy_state();
  auto specs = block.description().parameters();
  for (auto& spec : specs)
    for (auto& t : state.tensors)
      if (t.name == spec.name)
        found.push_back(at::from_blob(t.bytes.data, t.shape, at::kFloat).clone());
  return found;
}

}  // namespace shoal::engine::test
