#include "torch/threads.hpp"

#include <ATen/Parallel.h>

namespace shoal::engine {

void configure_threads(const core::training_options& training) {
  at::set_num_threads(static_cast<int>(training.threads));
}

}  // namespace shoal::engine
