#include "sim/world.hpp"

#include <algorithm>

#include "sim/sim_node.hpp"
#include "sim/sim_supervisor.hpp"

namespace shoal::sim {

using namespace core;

world::world(const cluster_options& o, std::ostream* log_to)
  : options(o),
    log(log_to),
    random(rng::of(std::vector<std::uint64_t>{o.seed}, "cluster")),
    job(draw_job(random, draw)),
    net(loop, random, draw.net),
    check(job, draw.block_count),
    checkpoints(check, job.checkpoint.keep_latest_k) {
  bool real = o.real_planner || below(2) == 0;
  plan = real ? planner(core::plan) : make_random_planner(mix(o.seed, 5), draw);
  if (real) draw.depth_min = 1;
}

world::~world() = default;

void world::note(std::string_view what, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  auto now = static_cast<std::uint64_t>(loop.now().time_since_epoch().count());
  std::uint64_t name = 0;
  for (char letter : what) name = name * 131 + static_cast<unsigned char>(letter);
  outcome.log_hash = mix(mix(outcome.log_hash, now, name), mix(a, b, c));
  if (log == nullptr) return;
  *log
    << std::chrono::duration_cast<std::chrono::microseconds>(loop.now().time_since_epoch()).count()
    << "us " << what << ' ' << a << ' ' << b << ' ' << c << '\n';
}

void world::comment(const std::string& text) {
  if (log == nullptr) return;
  *log
    << std::chrono::duration_cast<std::chrono::microseconds>(loop.now().time_since_epoch()).count()
    << "us " << text << '\n';
}

nanoseconds world::some(nanoseconds least, nanoseconds most) {
  return least + nanoseconds(random.below(static_cast<std::uint64_t>((most - least).count()) + 1));
}

void world::send_between(int from, int to, task deliver, nanoseconds work) {
  auto pair = std::minmax(from, to);
  net.send(
    from, to,
    [this, pair = std::pair<int, int>(pair), life = connections[pair],
     deliver = std::move(deliver)] {
      if (connections[pair] == life) deliver();
    },
    work);
}

void world::sever(int a, int b) {
  ++connections[std::minmax(a, b)];
  for (auto [end, other] : {std::pair(a, b), std::pair(b, a)})
    loop.after(some(10us, 20ms), [this, end = end, other = other] { node(end).broken(other); });
}

int world::spawn_node() {
  int place = static_cast<int>(nodes.size()) + 1;
  nodes.push_back(std::make_unique<sim_node>(*this, place));
  nodes.back()->start();
  return place;
}

void world::start_supervisor() {
  if (supervisor) former.push_back(std::move(supervisor));
  supervisor = std::make_unique<sim_supervisor>(*this);
  supervisor->start();
}

std::uint32_t world::useful_nodes() const {
  return static_cast<std::uint32_t>(
    std::ranges::count_if(nodes, [](auto& n) { return n->alive() && !n->leaving(); }));
}

std::uint32_t world::nodes_needed() const {
  return std::max(job.parallelism.nodes_min, draw.depth_min);
}

job_options draw_job(rng& random, luck& draw) {
  auto pick = [&](std::initializer_list<std::uint32_t> values) {
    return *(values.begin() + random.below(values.size()));
  };
  job_options job;
  draw.block_count = pick({3, 4, 5, 6});
  job.training.steps = 10 + static_cast<std::uint32_t>(random.below(50));
  job.training.micro_batches = pick({3, 4, 5, 6, 8});
  job.training.max_norm = 2;
  job.validation.every = pick({0, 0, 3, 5});
  job.validation.micro_batches = pick({1, 3, 4});
  job.checkpoint.every = pick({0, 2, 3, 5});
  job.checkpoint.keep_latest_k = pick({1, 2, 3, 0});
  job.parallelism.nodes_min = pick({1, 1, 2});
  draw.nodes_first = pick({2, 3, 4, 5});
  draw.depth_min = pick({1, 1, 1, 2});
  job.nodes.local = draw.nodes_first;
  job.timeouts.failure = 400ms;
  job.timeouts.gather = 20ms;
  job.timeouts.answer = 1500ms;
  job.timeouts.prepare = 5s;
  job.timeouts.orphan = std::chrono::seconds(pick({3, 6, 12}));
  draw.fault_count = static_cast<std::uint32_t>(random.below(36));
  draw.fault_every = std::chrono::milliseconds(pick({30, 80, 200, 400}));
  draw.fetch_failure_share = random.below(3) == 0 ? 0.03 : 0;
  draw.write_failure_share = random.below(3) == 0 ? 0.08 : 0;
  if (random.below(4) == 0) draw.net.late_share = 0.1;
  if (random.below(4) == 0) draw.net.delay_max = 15ms;
  return job;
}

plan_profile profile_of(std::uint32_t block_count) {
  plan_profile profile;
  for (std::uint32_t b = 0; b < block_count; ++b)
    profile.blocks.push_back({"block " + std::to_string(b), 1ms, 2ms, 1000, 2000, 100, 100});
  return profile;
}

namespace {

/// Cuts [0, total) into `count` ranges that are not empty.
std::vector<index_range> cut(rng& random, std::uint32_t total, std::uint32_t count) {
  std::vector<std::uint32_t> ends;
  for (std::uint32_t i = 1; i < total; ++i) ends.push_back(i);
  for (std::size_t i = ends.size(); i > 1; --i) std::swap(ends[i - 1], ends[random.below(i)]);
  ends.resize(count - 1);
  ends.push_back(total);
  std::ranges::sort(ends);
  std::vector<index_range> ranges;
  std::uint32_t begin = 0;
  for (auto end : ends) ranges.push_back({std::exchange(begin, end), end});
  return ranges;
}

}  // namespace

planner make_random_planner(std::uint64_t seed, const luck& draw) {
  return [seed, draw, calls = std::uint64_t{0}](
           const plan_profile& profile, const std::vector<plan_node>& given, const layout&,
           const job_options& job) mutable -> result<plan_result> {
    auto random = rng::of(std::vector<std::uint64_t>{seed, ++calls}, "plan");
    if (given.size() < std::max<std::size_t>(job.parallelism.nodes_min, draw.depth_min))
      return error{errc::too_few_nodes, std::to_string(given.size()) + " nodes are too few"};
    auto nodes = given;
    for (std::size_t i = nodes.size(); i > 1; --i) std::swap(nodes[i - 1], nodes[random.below(i)]);
    auto block_count = static_cast<std::uint32_t>(profile.blocks.size());
    auto count = static_cast<std::uint32_t>(nodes.size());
    auto replicas_max = std::min(count / draw.depth_min, job.training.micro_batches);
    auto replicas = 1 + static_cast<std::uint32_t>(random.below(replicas_max));
    auto shares = cut(random, job.training.micro_batches, replicas);
    plan_result made;
    made.reason = "drawn";
    std::uint32_t left = count;
    for (std::uint32_t r = 0; r < replicas; ++r) {
      auto kept = (replicas - r - 1) * draw.depth_min;  // for those still to come
      auto depth_max = std::min(left - kept, block_count);
      auto depth =
        draw.depth_min + static_cast<std::uint32_t>(random.below(depth_max - draw.depth_min + 1));
      replica chain;
      chain.micro_batches = shares[r];
      auto chunks = 1 + static_cast<std::uint32_t>(random.below(block_count / depth));
      auto parts = cut(random, block_count, depth * chunks);
      for (std::uint32_t s = 0; s < depth; ++s) {
        std::vector<index_range> mine;
        for (std::uint32_t c = 0; c < chunks; ++c) mine.push_back(parts[c * depth + s]);
        chain.stages.push_back({nodes[--left].node, block_runs(std::move(mine))});
      }
      made.shape.replicas.push_back(std::move(chain));
    }
    while (left > 0) made.spares.push_back(nodes[--left].node);
    return made;
  };
}

}  // namespace shoal::sim
