#pragma once
// What all parts of a simulated cluster share.

#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "sim/checker.hpp"
#include "sim/cluster.hpp"
#include "sim/disk.hpp"
#include "sim/network.hpp"

namespace shoal::sim {

class sim_node;
class sim_supervisor;

/// The luck of a seed that is not in the job.
struct luck {
  std::uint32_t block_count = 4;
  std::uint32_t nodes_first = 3;
  std::uint32_t depth_min = 1;  ///< fewer stages do not hold the model
  std::uint32_t fault_count = 6;
  nanoseconds fault_every = 500ms;  ///< on average
  double fetch_failure_share = 0;
  double write_failure_share = 0;
  network::options net;
};

struct world {
  world(const cluster_options& o, std::ostream* log_to);
  ~world();

  /// One line of the log, and a bit of its hash.
  void note(std::string_view what, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0);
  /// A line that the hash does not need.
  void comment(const std::string& text);

  nanoseconds some(nanoseconds least, nanoseconds most);
  std::uint64_t below(std::uint64_t bound) { return random.below(bound); }

  /// Between two nodes: lost when their connection ends before it arrives.
  void send_between(int from, int to, task deliver, nanoseconds work = 0ns);
  /// The connection between two nodes ends: what is under way is lost, both learn of it.
  void sever(int a, int b);

  sim_node& node(int place) { return *nodes[static_cast<std::size_t>(place - 1)]; }
  int spawn_node();
  void start_supervisor();
  /// Nodes that would do, if all went well from now on.
  std::uint32_t useful_nodes() const;
  std::uint32_t nodes_needed() const;

  const cluster_options& options;
  std::ostream* log;
  rng random;
  core::job_options job;
  luck draw;
  event_loop loop;
  network net;
  checker check;
  disk checkpoints;
  core::planner plan;
  core::ledger_state ledger;  // what is durable of it
  std::vector<std::unique_ptr<sim_node>> nodes;
  std::unique_ptr<sim_supervisor> supervisor;
  std::vector<std::unique_ptr<sim_supervisor>> former;       // tasks may still point to them
  std::map<std::pair<int, int>, std::uint64_t> connections;  // grows with each end of one
  bool calm = false;                                         // the faults are over
  bool finished = false;
  cluster_outcome outcome;
};

/// Draws a small job, and luck.
core::job_options draw_job(rng& random, luck& draw);
/// A planner that knows no reason: any layout that is right, the same for the same seed.
core::planner make_random_planner(std::uint64_t seed, const luck& draw);
core::plan_profile profile_of(std::uint32_t block_count);

}  // namespace shoal::sim
