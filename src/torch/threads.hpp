#pragma once
// How a process computes: part of the bits, so that every process of a job sets it up alike.

#include "core/job.hpp"

namespace shoal::engine {

/// Sets torch's threads to training.threads, and the allocator to keep what it has, so that the big
/// tensors of each micro-batch do not cost page faults again and again. Each thread that calls torch
/// calls this first.
void configure_threads(const core::training_options& training);

}  // namespace shoal::engine
