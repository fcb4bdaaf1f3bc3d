#include "unit/core/plan/workplace.hpp"

#include <limits>

#include "base/rng.hpp"
#include "core/reduction/tree.hpp"

using namespace shoal;
using namespace shoal::core;

TEST_CASE("one to eight equal nodes are all used, and every block has a second holder",
          "[core][plan]") {
  std::chrono::nanoseconds last{};
  for (std::uint32_t n = 1; n <= 8; ++n) {
    auto made = workplace().with(n).made();
    CAPTURE(n, text_of(made.shape), made.reason);
    CHECK(made.spares.empty());
    CHECK(nodes_of(made.shape).size() == n);
    if (n > 1) CHECK(made.shape.replicas.size() > 1);
    if (n > 1) CHECK(made.step_expected < last + last / 100);  // four replicas are as fast as five
    CHECK(made.moved_bytes == 0);
    last = made.step_expected;
  }
  CHECK(workplace().with(1).made().step_expected == 16 * 8 * 30ms);
  CHECK(text_of(workplace().with(2).made().shape) == "2 replicas: 1:[0-7] x8 | 2:[0-7] x8");
  CHECK(depths(workplace().with(3).made().shape) == sizes{2, 1});
  CHECK(shares(workplace().with(3).made().shape) == counts{10, 6});
}

TEST_CASE("the closed form of the flush schedules prices a pipeline", "[core][plan]") {
  workplace four;
  four.job.parallelism.depth = 4;
  four.job.parallelism.schedule = "gpipe";
  four.profile.link_latency = 0ns;
  four.profile.link_bytes_per_s = 0;
  auto made = four.with(4).made();
  CHECK(made.step_expected == (16 + 4 - 1) * 2 * 30ms);
  four.job.training.recompute =
    recompute_rule::always;  // forward runs again on all stages but the last
  CHECK(four.made().step_expected == (16 + 4 - 1) * 2 * 40ms);
}

TEST_CASE("a slow network makes pipelines, a fast one replicas", "[core][plan]") {
  workplace two;
  two.with(2);
  CHECK(depths(two.made().shape) == sizes{1, 1});
  two.profile.link_bytes_per_s = 12.5e6;  // 32 MiB of gradients there and back take 5 s
  auto made = two.made();
  CHECK(depths(made.shape) == sizes{2});
  CHECK_THAT(made.reason, Catch::Contains("2 replicas would take"));
}

TEST_CASE("a second holder is worth up to five percent", "[core][plan]") {
  // One replica of two stages takes 17 turns of 120 ms = 2.04 s; two replicas 1.92 s and exchange.
  workplace two;
  two.profile.link_latency = 0ns;
  two.with(2);
  two.profile.link_bytes_per_s = 32.0 * mebibyte / 0.20;  // 2.12 s
  CHECK(depths(two.made().shape) == sizes{1, 1});
  two.profile.link_bytes_per_s = 32.0 * mebibyte / 0.40;  // 2.32 s
  CHECK(depths(two.made().shape) == sizes{2});
}

TEST_CASE("where nodes are lost often, a second holder is worth the steps that it saves",
          "[core][plan]") {
  // 2.04 s a step against 2.32 s, as above, without checkpoint: a loss undoes 50 steps.
  workplace two;
  two.profile.link_latency = 0ns;
  two.profile.link_bytes_per_s = 32.0 * mebibyte / 0.40;
  two.with(2);
  two.job.nodes.mean_life = 10min;  // 2 * 2.04 / 600 losses a step: 0.69 s a step to redo
  CHECK(depths(two.made().shape) == sizes{1, 1});
  two.job.checkpoint.every = 4;  // 0.03 s
  CHECK(depths(two.made().shape) == sizes{2});
  CHECK_THAT(two.made().reason, Catch::Contains("to redo what losses undo"));
  two.job.checkpoint.every = 0;
  two.job.nodes.mean_life = 0ns;  // no node is ever lost
  CHECK(depths(two.made().shape) == sizes{2});
  CHECK_THAT(two.made().reason, !Catch::Contains("to redo"));
}

TEST_CASE("blocks are balanced by time, not by number", "[core][plan]") {
  workplace two(4);
  two.job.parallelism.depth = 2;
  two.profile.blocks[3].backward = 80ms;  // a head as long as the three others
  CHECK(text_of(two.with(2).made().shape) == "1 replica: 1:[0-2] 2:[3-3] x16");
}

TEST_CASE("a node of half the speed gets half the work", "[core][plan]") {
  workplace uneven;
  uneven.with(1, 1).with(1, 0.5);
  auto made = uneven.made();
  CHECK(depths(made.shape) == sizes{1, 1});
  auto given = shares(made.shape);
  std::sort(given.begin(), given.end());
  CHECK(given == counts{5, 11});  // leaves of two would cost a tenth

  uneven.job.parallelism.depth = 2;
  uneven.profile.blocks.resize(6);
  made = uneven.made();
  for (auto& s : made.shape.replicas[0].stages)
    CHECK(s.blocks.size() == (s.node == node_id{1} ? 4 : 2));
}

TEST_CASE("a node that would hold the others up is a spare, with the reason", "[core][plan]") {
  auto made = workplace(2).with(3).with(1, 0.01).made();
  CHECK(made.spares == std::vector<node_id>{{4}});
  CHECK_THAT(made.reason,
             Catch::Contains("node 4 is spare: with all nodes at work a step would take"));
}

TEST_CASE("ranges of micro-batches end at leaves when that costs little", "[core][plan]") {
  workplace three;
  three.job.training.micro_batches = 200;
  three.job.training.reduction_leaf = 2;
  three.job.parallelism.depth = 1;
  auto thirds = shares(three.with(3).made().shape);  // 67, 67 and 66 would be even
  std::sort(thirds.begin(), thirds.end());
  CHECK(thirds == counts{66, 66, 68});
  // Twelve micro-batches of leaf 4 over two replicas: 8 and 4 would cost a third; 6 and 6 it is.
  workplace two;
  two.job.training.micro_batches = 12;
  two.job.training.reduction_leaf = 4;
  CHECK(shares(two.with(2).made().shape) == counts{6, 6});
}

TEST_CASE("a fixed depth is kept, and what is left over makes a shallower replica",
          "[core][plan]") {
  auto shape = [](std::uint32_t depth, std::uint32_t nodes) {
    workplace fixed;
    fixed.job.parallelism.depth = depth;
    return depths(fixed.with(nodes).made().shape);
  };
  CHECK(shape(2, 3) == sizes{2, 1});
  CHECK(shape(2, 6) == sizes{2, 2, 2});
  CHECK(shape(3, 5) == sizes{3, 2});
  CHECK(shape(3, 6) == sizes{3, 3});
  CHECK(shape(1, 3) == sizes{1, 1, 1});
  CHECK(shape(4, 3) == sizes{3});
  CHECK(shape(20, 9) == sizes{8, 1});  // there are eight blocks
}

TEST_CASE("the planner chooses the schedule where the job lets it", "[core][plan]") {
  workplace four;
  four.job.parallelism.depth = 4;
  four.job.parallelism.schedule = "auto";
  four.job.parallelism.chunks = 1;
  four.profile.link_latency = 0ns;
  four.with(4);
  CHECK(four.made().shape.order == stage_order::one_f_one_b);  // nothing to hide: least memory
  four.profile.link_latency = 30ms;                            // half a turn: eager hides it
  CHECK(four.made().shape.order == stage_order::eager);
  CHECK_THAT(four.made().reason,
             Catch::Contains("Schedule 1f1b-eager, of the best layouts of each: 1f1b "));
  four.profile.link_latency = 100ms;  // further than eager reaches, yet no need to hold all
  auto far = four.made();
  CHECK(far.shape.order == stage_order::searched);
  auto& ahead = far.shape.replicas[0].ahead;
  REQUIRE(ahead.size() == 4);
  CHECK(ahead[0] > 6);
  CHECK(ahead[0] < 15);
  CHECK_THAT(text_of(far.shape), Catch::Contains(", 1f1b-searched"));
  four.job.parallelism.schedule = "1f1b-searched";
  CHECK(four.made().shape.order == stage_order::as_job);
  CHECK(four.made().shape.replicas[0].ahead == ahead);
  four.job.parallelism.schedule = "1f1b";
  CHECK(four.made().shape.order == stage_order::as_job);
  CHECK(four.made().shape.replicas[0].ahead.empty());
  CHECK(four.made().step_expected > far.step_expected);
}

TEST_CASE("chunks halve the bubble, and stay where they are", "[core][plan]") {
  workplace four;
  four.job.parallelism.depth = 4;
  four.job.parallelism.schedule = "auto";
  four.with(4);
  auto made = four.made();
  CHECK(made.shape.order == stage_order::interleaved);
  CHECK(made.shape.replicas[0].chunk_count() == 2);
  // (16 + 3/2) turns of 60 ms, and the way through.
  CHECK(made.step_expected > 1050ms);
  CHECK(made.step_expected < 1060ms);
  four.present = made.shape;
  CHECK(four.made().shape == made.shape);
  CHECK(four.made().moved_bytes == 0);

  // Without node 2 three stages of two chunks; each survivor keeps what it can.
  four.without(2);
  auto three = four.made();
  CHECK(three.shape.replicas[0].stages.size() == 3);
  CHECK(three.shape.replicas[0].chunk_count() == 2);
  CHECK(three.moved_bytes > 0);
  CHECK(three.moved_bytes < 8 * 12 * mebibyte);

  workplace few(5);  // blocks for one chunk a stage only
  few.job.parallelism.depth = 4;
  few.job.parallelism.schedule = "interleaved-1f1b";
  CHECK(few.with(4).made().shape.replicas[0].chunk_count() == 1);
  few.job.parallelism.depth = 2;
  few.job.parallelism.chunks = 3;
  CHECK(few.made().shape.replicas[0].chunk_count() == 2);
}

TEST_CASE("between orders too, a move must be worth its pause", "[core][plan]") {
  workplace four;
  four.job.parallelism.depth = 4;
  four.job.parallelism.schedule = "1f1b";
  for (auto& b : four.profile.blocks) b.boundary_bytes = 16;
  four.profile.link_bytes_per_s = 1e5;  // two minutes for a block's state
  four.with(4);
  four.present = four.made().shape;
  four.job.parallelism.schedule = "auto";
  auto free = four.made();
  CHECK(free.shape.order == stage_order::interleaved);  // 8 % faster
  CHECK(free.moved_bytes > 0);
  four.job.nodes.mean_life = 1h;
  auto kept = four.made();
  CHECK(kept.shape.order == stage_order::one_f_one_b);
  CHECK(kept.moved_bytes == 0);
  four.job.nodes.mean_life = 100h;
  CHECK(four.made().shape == free.shape);
}

TEST_CASE("Varuna's order may hold what a node's memory allows", "[core][plan]") {
  workplace two;
  two.job.parallelism.depth = 2;
  two.job.parallelism.schedule = "varuna";
  two.with(2);
  CHECK_THAT(two.failed().text, Catch::Contains("recompute = true"));
  two.job.training.recompute = recompute_rule::always;
  CHECK(two.made().shape.replicas[0].ahead == std::vector<std::uint32_t>{16, 16});
  // Room for the inputs of five micro-batches beside what is always there.
  auto base = stage_bytes(two.profile, {0, 4}, 0, accumulate({16, 2}, {0, 16}).slot_count, true);
  two.nodes.clear();
  two.with(2, 1, base + 5 * (1 << 16));
  CHECK(two.made().shape.replicas[0].ahead == std::vector<std::uint32_t>{5, 1});
}

TEST_CASE("spare nodes of one reason are told together", "[core][plan]") {
  workplace few;
  few.job.parallelism.nodes_max = 2;
  auto made = few.with(9).made();
  CHECK(made.spares.size() == 7);
  CHECK_THAT(made.reason, Catch::Contains(" and 3 more are spare: parallelism.nodes_max is 2"));
}

TEST_CASE("a fixed depth is kept though fewer stages were faster", "[core][plan]") {
  workplace far;
  far.job.parallelism.depth = 2;
  far.profile.link_latency = 10s;
  CHECK(depths(far.with(1).made().shape) == sizes{1});  // no nodes for it
  CHECK(depths(far.with(1).made().shape) == sizes{2});  // one more
}

TEST_CASE("there are never more replicas than micro-batches", "[core][plan]") {
  workplace few(2);
  few.job.training.micro_batches = 2;
  auto made = few.with(5).made();
  CHECK(depths(made.shape) == sizes{2, 2});
  CHECK(made.spares.size() == 1);
  CHECK_THAT(made.reason, Catch::Contains("micro-batches and blocks allow 4 nodes at most"));
}

TEST_CASE("nodes_min holds the job, nodes_max makes spares", "[core][plan]") {
  workplace limited;
  limited.job.parallelism.nodes_min = 3;
  limited.with(2);
  CHECK(limited.failed().code == errc::too_few_nodes);
  CHECK_THAT(limited.failed().text,
             Catch::Contains("2 nodes here, parallelism.nodes_min asks for 3"));
  limited.with(1).made();
  limited.job.parallelism.nodes_max = 3;
  auto made = limited.with(2).made();
  CHECK(made.spares == std::vector<node_id>{{4}, {5}});
  CHECK_THAT(made.reason, Catch::Contains("parallelism.nodes_max is 3"));
  CHECK(workplace().failed().code == errc::too_few_nodes);
}

TEST_CASE("nodes_max keeps the nodes that hold something, and the fast ones", "[core][plan]") {
  workplace busy;
  busy.job.parallelism.nodes_max = 2;
  busy.with(3);
  busy.present.replicas = {{{{node_id{2}, {0, 8}}}, {0, 8}}, {{{node_id{3}, {0, 8}}}, {8, 16}}};
  auto made = busy.made();
  CHECK(made.shape == busy.present);
  CHECK(made.spares == std::vector<node_id>{{1}});
  busy.nodes[0].speed = 2;
  auto spares = busy.made().spares;
  CHECK(std::count(spares.begin(), spares.end(), node_id{1}) == 0);
}
