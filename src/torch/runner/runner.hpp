#pragma once
// The stage runner: trains one stage of a view on a thread of its own.
//
//      orders: get_ready, begin, decide, halt            frames: activations, gradients, sums,
//      state
//                     \                                     /
//                      +--------------> inbox <------------+          inbox.hpp
//                                         |
//                             one trainer thread                      stage_runner.cpp
//            preparing: state_fetcher, state_server      training: round, reducer
//                                         |
//                                      holdings: blocks in memory at one step
//
// The thread does one small unit of work at a time (a block forward, a block backward, one addition
// of a sum) and looks at its orders in between, so that a halt never waits for more than one block.

#include <functional>
#include <memory>

#include "core/job.hpp"
#include "core/ports.hpp"
#include "shoal/data.hpp"
#include "shoal/model.hpp"

namespace shoal::engine {

/// What a runner needs; everything referred to must outlive it.
struct runner_options {
  core::job_options job;  ///< found sound by check_job
  const chain& model;
  const dataset& data;        ///< read from the runner's thread alone
  core::tensor_plane& plane;  ///< attached and detached by the runner; nobody else opens it
  core::block_store& store;
  std::function<void(core::runner_event)> sink;  ///< called from the runner's thread; returns soon
};

/// Starts the thread. Its end, in the destructor, waits for the unit of work that runs.
std::unique_ptr<core::stage_runner> make_stage_runner(runner_options options);

}  // namespace shoal::engine
