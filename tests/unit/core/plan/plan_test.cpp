#include "core/plan/plan.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <set>

#include "base/rng.hpp"
#include "core/reduction/tree.hpp"

using namespace shoal;
using namespace shoal::core;

namespace {

constexpr std::uint64_t mebibyte = 1 << 20;
constexpr std::uint64_t reserve = 350 * mebibyte;

/// A workplace: equal blocks of 30 ms and 4 MiB of parameters, a fast network, 16 micro-batches.
struct workplace {
  plan_profile profile;
  job_options job;
  std::vector<plan_node> nodes;
  layout present;

  explicit workplace(std::uint32_t blocks = 8) {
    for (std::uint32_t b = 0; b < blocks; ++b)
      profile.blocks.push_back({.name = "block " + std::to_string(b),
                                .forward = 10ms,
                                .backward = 20ms,
                                .parameter_bytes = 4 * mebibyte,
                                .state_bytes = 8 * mebibyte,
                                .stash_bytes = mebibyte,
                                .boundary_bytes = 1 << 16});
    profile.link_bytes_per_s = 10e9;
    job.training.micro_batches = 16;
  }

  workplace& with(std::uint32_t count, double speed = 1, std::uint64_t memory = 0) {
    for (std::uint32_t i = 0; i < count; ++i)
      nodes.push_back({node_id{nodes.size() + 1}, speed, memory});
    return *this;
  }
  workplace& without(std::uint64_t node) {
    std::erase_if(nodes, [&](auto& n) { return n.node == node_id{node}; });
    return *this;
  }

  /// A plan that passes every rule.
  plan_result made() const {
    auto result = plan(profile, nodes, present, job);
    if (!result) FAIL(result.error().text);
    CHECK(check(result->shape, std::uint32_t(profile.blocks.size()), job.training.micro_batches,
                errc::internal));
    auto used = nodes_of(result->shape);
    std::set<node_id> all(used.begin(), used.end());
    for (auto node : result->spares) REQUIRE(all.insert(node).second);
    CHECK(all.size() == nodes.size());
    for (auto& n : nodes) CHECK(all.count(n.node) == 1);
    for (auto node : result->spares)
      CHECK_THAT(result->reason,
                 Catch::Contains("node " + std::to_string(node.value) + " is spare: "));
    CHECK(result->step_expected > 0ns);
    return *result;
  }
  error failed() const {
    auto result = plan(profile, nodes, present, job);
    REQUIRE_FALSE(result);
    return result.error();
  }
};

std::vector<std::size_t> depths(const layout& shape) {
  std::vector<std::size_t> all;
  for (auto& replica : shape.replicas) all.push_back(replica.stages.size());
  return all;
}

std::vector<std::uint32_t> shares(const layout& shape) {
  std::vector<std::uint32_t> all;
  for (auto& replica : shape.replicas) all.push_back(replica.micro_batches.size());
  return all;
}

std::vector<stage> first_chain(const plan_result& made) { return made.shape.replicas[0].stages; }

using sizes = std::vector<std::size_t>;
using counts = std::vector<std::uint32_t>;

}  // namespace

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
  four.job.training.recompute = true;  // forward runs again on all stages but the last
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

TEST_CASE("memory decides how deep the model must be cut", "[core][plan]") {
  // A stage of k blocks: 4 MiB of parameters, of gradients and of each partial sum; 8 of state; a
  // stash.
  workplace small;
  auto whole = stage_bytes(small.profile, {0, 8}, 1, 1, false);
  CHECK(whole == reserve + 8 * (2 * 4 + 4 + 8 + 1) * mebibyte);

  SECTION("two halves fit, the whole does not") {
    small.with(4, 1, stage_bytes(small.profile, {0, 4}, 2, 4, false));
    auto made = small.made();
    CHECK(depths(made.shape) == sizes{2, 2});
  }
  SECTION("one node is too few and the text says how much is short") {
    small.with(1, 1, whole - 1);
    auto refused = small.failed();
    CHECK(refused.code == errc::too_few_nodes);
    CHECK_THAT(refused.text, Catch::Contains("the model does not fit on 1 node") &&
                               Catch::Contains("too little"));
  }
  SECTION("a byte too few for the only possible stage, and the byte that was missing") {
    workplace one(1);
    one.job.training.micro_batches = 4;
    auto need = stage_bytes(one.profile, {0, 1}, 1, accumulate({4, 1}, {0, 4}).slot_count, false);
    one.with(1, 1, need - 1);
    CHECK(one.failed().code == errc::too_few_nodes);
    one.nodes[0].memory_bytes = need;
    CHECK(one.made().spares.empty());
  }
  SECTION("one block alone is too large for every node") {
    small.profile.blocks[5].parameter_bytes = 1000 * mebibyte;
    small.with(3, 1, 1000 * mebibyte);
    auto refused = small.failed();
    CHECK(refused.code == errc::no_memory);
    CHECK_THAT(refused.text,
               Catch::Contains("block 5 (block 5) alone needs") && Catch::Contains("nodes.memory"));
  }
  SECTION("a fixed depth that cannot fit is told as such") {
    small.job.parallelism.depth = 1;
    small.with(4, 1, whole - 1);
    auto refused = small.failed();
    CHECK(refused.code == errc::no_memory);
    CHECK_THAT(refused.text, Catch::Contains("parallelism.depth = 1"));
  }
  SECTION("a node too small for any block is a spare") {
    small.with(2).with(1, 1, reserve);
    auto made = small.made();
    CHECK(made.spares == std::vector<node_id>{{3}});
    CHECK_THAT(made.reason,
               Catch::Contains("node 3 is spare: it may use 350 MiB, the smallest block needs"));
  }
  SECTION("a small node takes a small stage") {
    small.job.parallelism.depth = 2;
    small.with(1, 1, 0).with(1, 1, stage_bytes(small.profile, {0, 2}, 2, 4, false));
    for (auto& s : first_chain(small.made()))
      if (s.node == node_id{2}) CHECK(s.blocks.size() <= 2);
  }
  SECTION("GPipe stashes more, recompute less") {
    for (auto& b : small.profile.blocks) b.stash_bytes = 100 * mebibyte;
    small.with(2, 1, reserve + 4 * 100 * 2 * mebibyte + 300 * mebibyte);
    CHECK(small.made().spares.empty());
    small.job.parallelism.schedule = "gpipe";
    CHECK(small.failed().code == errc::too_few_nodes);
    small.job.training.recompute = true;
    // Not even then: the last stage keeps all it has.
    CHECK(small.failed().code == errc::too_few_nodes);
  }
}

TEST_CASE("an unknown schedule is refused", "[core][plan]") {
  workplace odd;
  odd.job.parallelism.schedule = "1f2b";
  CHECK(odd.with(1).failed().code == errc::config);
}

TEST_CASE("what is there already stays where it is", "[core][plan]") {
  SECTION("nothing changes when nothing changed") {
    for (std::uint32_t n = 1; n <= 8; ++n) {
      workplace calm;
      calm.with(n);
      calm.present = calm.made().shape;
      auto again = calm.made();
      CHECK(again.shape == calm.present);
      CHECK(again.moved_bytes == 0);
      CHECK_THAT(again.reason, Catch::Contains("nothing changes"));
    }
  }
  SECTION("names do not matter: a layout by other ids is kept too") {
    workplace calm;
    calm.job.parallelism.depth = 2;
    calm.with(4);
    calm.present.replicas = {{{{node_id{3}, {0, 4}}, {node_id{2}, {4, 8}}}, {0, 8}},
                             {{{node_id{4}, {0, 4}}, {node_id{1}, {4, 8}}}, {8, 16}}};
    CHECK(calm.made().shape == calm.present);
  }
  SECTION("after a loss the others keep their stages") {
    workplace hit;
    hit.job.parallelism.depth = 2;
    hit.with(4);
    hit.present = hit.made().shape;
    REQUIRE(text_of(hit.present) == "2 replicas: 1:[0-3] 2:[4-7] x8 | 3:[0-3] 4:[4-7] x8");
    auto made = hit.without(3).made();
    CHECK(depths(made.shape) == sizes{2, 1});
    // Half a model, 4 blocks of parameters and state, goes to whoever becomes a replica alone.
    CHECK(made.moved_bytes == 4 * 12 * mebibyte);
  }
  SECTION("a node that takes the place of a lost one fetches only its stage") {
    workplace hit;
    hit.job.parallelism.depth = 2;
    hit.with(4);
    hit.present = hit.made().shape;
    hit.without(2).nodes.push_back({node_id{9}});
    auto made = hit.made();
    CHECK(made.moved_bytes == 4 * 12 * mebibyte);
    CHECK(text_of(made.shape) == "2 replicas: 1:[0-3] 9:[4-7] x8 | 3:[0-3] 4:[4-7] x8");
  }
  SECTION("an arrival gets its blocks, the others fetch nothing") {
    workplace grown;
    grown.with(2);
    grown.present = grown.made().shape;
    auto made = grown.with(1).made();
    CHECK(made.spares.empty());
    CHECK(made.moved_bytes == 4 * 12 * mebibyte);  // the deeper replica's new half
  }
  SECTION("a cut that is nearly as good is kept") {
    workplace cut;
    cut.job.parallelism.depth = 2;
    cut.with(2);
    cut.profile.blocks[3].forward += 1ms;  // the best cut is now elsewhere by less than two percent
    cut.profile.blocks[4].forward -= 1ms;
    cut.present.replicas = {{{{node_id{2}, {0, 4}}, {node_id{1}, {4, 8}}}, {0, 16}}};
    CHECK(cut.made().shape == cut.present);
    cut.present.replicas[0].stages[0].blocks.end = cut.present.replicas[0].stages[1].blocks.begin =
      5;
    CHECK(cut.made().shape != cut.present);  // a quarter slower is too much
  }
  SECTION("nodes of other speeds do not change places") {
    workplace mixed;
    mixed.job.parallelism.depth = 2;
    mixed.with(1, 2).with(1, 1);
    mixed.profile.blocks.resize(6);
    mixed.present.replicas = {{{{node_id{2}, {0, 4}}, {node_id{1}, {4, 6}}}, {0, 16}}};
    for (auto& s : first_chain(mixed.made()))
      CHECK(s.blocks.size() == (s.node == node_id{1} ? 4 : 2));
  }
  SECTION("a present layout of another job is not kept") {
    workplace other;
    other.with(2);
    other.present.replicas = {{{{node_id{1}, {0, 3}}, {node_id{2}, {3, 6}}}, {0, 16}}};
    CHECK(other.made().shape != other.present);
  }
}

TEST_CASE("the order of the nodes does not matter", "[core][plan]") {
  workplace a;
  a.with(3).with(2, 0.7).with(2, 1.3, 2000 * mebibyte);
  auto b = a;
  std::reverse(b.nodes.begin(), b.nodes.end());
  CHECK(a.made().shape == b.made().shape);
  CHECK(a.made().reason == b.made().reason);
}

TEST_CASE("a speed that was not measured counts as usual", "[core][plan]") {
  auto made = workplace()
                .with(1)
                .with(1, 0)
                .with(1, -1)
                .with(1, std::numeric_limits<double>::quiet_NaN())
                .made();
  CHECK(made.spares.empty());
  CHECK(depths(made.shape) == depths(workplace().with(4).made().shape));
}

TEST_CASE("any nodes and any profile give a sound layout through a life of losses and arrivals",
          "[core][plan]") {
  rng random(11);
  for (int life = 0; life < 60; ++life) {
    workplace any(std::uint32_t(1 + random.below(14)));
    for (auto& b : any.profile.blocks) {
      b.forward = nanoseconds(random.below(40'000'000));
      b.backward = 2 * b.forward;
      b.parameter_bytes = random.below(64) * mebibyte;
      b.state_bytes = 2 * b.parameter_bytes;
    }
    any.profile.link_bytes_per_s = random.below(2) == 0 ? 1e9 : 2e7;
    any.job.training.micro_batches = std::uint32_t(1 + random.below(40));
    any.job.training.recompute = random.below(2) == 0;
    any.job.parallelism.depth = random.below(3) == 0 ? std::uint32_t(1 + random.below(4)) : 0;
    any.job.parallelism.schedule = random.below(2) == 0 ? "1f1b" : "gpipe";
    std::uint64_t next = 1;
    for (int event = 0; event < 8; ++event) {
      if (any.nodes.size() < 2 || random.below(2) == 0)
        any.nodes.push_back({node_id{next++}, random.below(2) == 0 ? 1 : 0.3 + random.uniform(),
                             random.below(3) == 0 ? (2000 + random.below(4000)) * mebibyte : 0});
      else
        any.nodes.erase(any.nodes.begin() + long(random.below(any.nodes.size())));
      auto result = plan(any.profile, any.nodes, any.present, any.job);
      if (!result) {
        CHECK(
          (result.error().code == errc::too_few_nodes || result.error().code == errc::no_memory));
        continue;
      }
      auto made = any.made();
      // Every stage fits, whatever its schedule stashes.
      for (auto& replica : made.shape.replicas)
        for (auto& s : replica.stages) {
          auto memory = std::find_if(any.nodes.begin(), any.nodes.end(), [&](auto& n) {
                          return n.node == s.node;
                        })->memory_bytes;
          auto least = stage_bytes(any.profile, s.blocks, 1, 1, any.job.training.recompute);
          if (memory != 0) CHECK(least <= memory);
        }
      any.present = made.shape;
      CHECK(any.made().shape == made.shape);
    }
  }
}

TEST_CASE("sixty-four nodes are planned in no time", "[core][plan]") {
  workplace large(48);
  large.job.training.micro_batches = 256;
  large.with(64);
  large.present = large.made().shape;
  large.without(7).without(40);
  auto begin = std::chrono::steady_clock::now();
  auto made = large.made();
  // Milliseconds when nothing else runs; the bound is for a busy machine and a sanitizer.
  CHECK(std::chrono::steady_clock::now() - begin < 2s);
  CHECK(nodes_of(made.shape).size() == 62);
}
