#pragma once
// How a process computes: part of the bits, so that every process of a job sets it up alike.

#include "core/job.hpp"

namespace shoal::engine {

/// Sets torch's threads to training.threads. Each thread that computes calls this first: OpenMP and
/// MKL keep the number by thread.
void configure_threads(const core::training_options& training);

}  // namespace shoal::engine
