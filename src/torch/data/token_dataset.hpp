#pragma once
// Samples for language models: windows over tokens.
//
//   tokens:   0 1 2 3 4 5 6 7 8 ...      seq_len = 3
//   sample 0: inputs 0 1 2   targets 1 2 3
//   sample 1: inputs 3 4 5   targets 4 5 6
//
// Inputs do not overlap. What is left at the end is not used. Without validation files, the last
// data.validation_fraction of the tokens is the validation split.

#include <memory>

#include "core/job.hpp"
#include "shoal/data.hpp"
#include "torch/data/token_files.hpp"

namespace shoal::engine {

/// Opens data.path as windows of model.seq_len tokens below model.vocab_size. Up to 256 MiB are
/// read through at once for tokens beyond it; larger data when a sample is used, then data_error is
/// thrown. `errc::data`, `errc::config` (no path, a fraction outside [0, 1)),
/// `errc::no_permission`.
result<std::unique_ptr<dataset>> open_token_dataset(const core::job_options& job,
                                                    token_format format);

}  // namespace shoal::engine
