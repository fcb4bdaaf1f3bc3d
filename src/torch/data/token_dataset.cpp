#include "torch/data/token_dataset.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "base/assert.hpp"

namespace shoal::engine {

namespace {

constexpr std::uint64_t scanned_bytes_max = std::uint64_t{256} << 20;

class token_dataset final : public dataset {
public:
  token_dataset(token_stream training, token_stream validation, std::uint64_t length,
                std::uint64_t vocabulary)
    : training_(std::move(training)),
      validation_(std::move(validation)),
      length_(length),
      vocabulary_(vocabulary),
      fingerprint_(validation_.fingerprint(training_.fingerprint(length))) {}

  std::uint64_t size() const override { return windows(training_); }
  std::uint64_t validation_size() const override { return windows(validation_); }
  micro_batch get(std::span<const std::uint64_t> samples) const override {
    return read(training_, samples);
  }
  micro_batch get_validation(std::span<const std::uint64_t> samples) const override {
    return read(validation_, samples);
  }
  std::uint64_t fingerprint() const override { return fingerprint_; }

  result<void> check() const {
    if (training_.bytes() + validation_.bytes() > scanned_bytes_max) return {};
    TRY_VOID(training_.check(vocabulary_));
    return validation_.check(vocabulary_);
  }

private:
  std::uint64_t windows(const token_stream& tokens) const {
    return tokens.size() == 0 ? 0 : (tokens.size() - 1) / length_;
  }

  micro_batch read(const token_stream& tokens, std::span<const std::uint64_t> samples) const {
    auto rows = static_cast<std::int64_t>(samples.size()),
         columns = static_cast<std::int64_t>(length_);
    micro_batch batch{at::empty({rows, columns}, at::kLong), at::empty({rows, columns}, at::kLong)};
    std::vector<std::int64_t> window(length_ + 1);
    auto* input = batch.inputs.data_ptr<std::int64_t>();
    auto* target = batch.targets.data_ptr<std::int64_t>();
    for (auto sample : samples) {
      SHOAL_ASSERT(sample < windows(tokens));
      tokens.read(sample * length_, window, vocabulary_);
      input = std::copy(window.begin(), window.end() - 1, input);
      target = std::copy(window.begin() + 1, window.end(), target);
    }
    return batch;
  }

  token_stream training_, validation_;
  std::uint64_t length_, vocabulary_, fingerprint_;
};

}  // namespace

result<std::unique_ptr<dataset>> open_token_dataset(const core::job_options& job,
                                                    token_format format) {
  auto fraction = job.data.validation_fraction;
  std::uint64_t length = job.model.seq_len;
  if (job.data.path.empty())
    return error{errc::config, "data.path is not set; name a file or folder of data to train on"};
  if (!(fraction >= 0 && fraction < 1))
    return error{errc::config, "data.validation_fraction = " + std::to_string(fraction) +
                                 ": must be at least 0 and below 1"};
  if (length == 0) return error{errc::config, "model.seq_len = 0: must be at least 1"};
  TRY(auto files, open_tokens(job.data.path, format));
  auto& all = files.training;
  if (!files.validation) {
    auto cut = all.size() -
               static_cast<std::uint64_t>(std::floor(static_cast<double>(all.size()) * fraction));
    files.validation = all.part(cut, all.size());
    all = all.part(0, cut);
  }
  if (all.size() < length + 1)
    return error{errc::data, "data \"" + job.data.path + "\" has " + std::to_string(all.size()) +
                               " tokens to train on, and one sample of model.seq_len = " +
                               std::to_string(length) + " needs " + std::to_string(length + 1) +
                               "; use more data or a shorter seq_len"};
  auto data = std::make_unique<token_dataset>(std::move(all), *std::move(files.validation), length,
                                              job.model.vocab_size);
  TRY_VOID(data->check());
  return result<std::unique_ptr<dataset>>(std::move(data));
}

}  // namespace shoal::engine
