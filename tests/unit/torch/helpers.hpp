#pragma once
// Small jobs, data that live in memory, and a way through a whole chain.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/reduction/tree.hpp"
#include "shoal/data.hpp"
#include "torch/block_runtime.hpp"
#include "torch/registry.hpp"
#include "unit/torch/with_torch.hpp"

namespace shoal::engine::test {

/// Two layers of 16 by 2 heads, 12 tokens in sequences of 6, N = 6 micro-batches of 2.
core::job_options small_job(const std::string& kind = "gpt2", double dropout = 0);

/// Tokens that a fixed rule makes from the sample's number.
class small_data final : public dataset {
public:
  explicit small_data(const core::job_options& job) : job_(job) {}
  std::uint64_t size() const override { return 40; }
  std::uint64_t validation_size() const override { return 10; }
  micro_batch get(std::span<const std::uint64_t> samples) const override {
    return make(samples, 0);
  }
  micro_batch get_validation(std::span<const std::uint64_t> samples) const override {
    return make(samples, 40);
  }
  std::uint64_t fingerprint() const override { return 1; }

private:
  micro_batch make(std::span<const std::uint64_t> samples, std::uint64_t first) const;
  core::job_options job_;
};

/// All blocks of a model in memory, with initial values.
struct whole_model {
  explicit whole_model(const core::job_options& of);
  /// Forward and backward of one micro-batch; returns the loss.
  float train(const micro_batch& data, step_id step, micro_batch_index g,
              const std::vector<core::reduction_action>& actions);

  core::job_options job;
  chain model;
  std::vector<std::unique_ptr<block_runtime>> blocks;
};

chain must_make(const core::model_options& options);
bool same_bits(const at::Tensor& a, const at::Tensor& b);
/// The samples 2g and 2g+1.
micro_batch batch_of(const core::job_options& job, micro_batch_index g);
/// A copy of the parameters of a block, in order.
tensors parameters_of(const block_runtime& block);

}  // namespace shoal::engine::test
