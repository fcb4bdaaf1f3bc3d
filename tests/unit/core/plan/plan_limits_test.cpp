#include "core/schedule/schedule.hpp"
#include "unit/core/plan/workplace.hpp"

#include <limits>

#include "base/rng.hpp"
#include "core/reduction/tree.hpp"

using namespace shoal;
using namespace shoal::core;

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
    small.job.training.recompute = recompute_rule::always;
    // Not even then: the last stage keeps all it has.
    CHECK(small.failed().code == errc::too_few_nodes);
  }
}

TEST_CASE("where the job leaves it open, stages recompute that would not fit", "[core][plan]") {
  workplace tight;
  for (auto& b : tight.profile.blocks) b.stash_bytes = 100 * mebibyte;
  tight.job.parallelism.depth = 2;
  // Four blocks and one pass, with room to spare: the last stage fits, the first holds two passes.
  auto memory = stage_bytes(tight.profile, {0, 4}, 1, 4, false) + 150 * mebibyte;
  tight.with(2, 1, memory);
  CHECK_THAT(tight.failed().text, Catch::Contains("training.recompute = \"auto\" may"));
  tight.job.training.recompute = recompute_rule::as_needed;
  auto made = tight.made();
  auto chain = first_chain(made);
  CHECK(chain[0].recompute);
  CHECK_FALSE(chain[1].recompute);
  CHECK_THAT(text_of(made.shape), Catch::Contains("]r 2:["));
  CHECK_THAT(made.reason, Catch::Contains("1 stage recomputing to fit"));
  for (std::size_t s = 0; s < 2; ++s)
    CHECK(stage_bytes(tight.profile, chain[s].blocks, s == 0 ? 2 : 1, 4, chain[s].recompute) <=
          memory);
  SECTION("its blocks are shared out by what they then take") {
    CHECK(chain[0].blocks.size() < chain[1].blocks.size());
  }
  SECTION("what fits again stops to recompute") {
    tight.present = made.shape;
    for (auto& n : tight.nodes) n.memory_bytes = 0;
    auto roomy = tight.made();
    for (auto& s : first_chain(roomy)) CHECK_FALSE(s.recompute);
    CHECK(roomy.reason.find("recomputing") == std::string::npos);
  }
  SECTION("a rule for all needs no word in the layout") {
    tight.job.training.recompute = recompute_rule::always;
    tight.present = made.shape;
    for (auto& s : first_chain(tight.made())) CHECK_FALSE(s.recompute);
  }
  SECTION("chunks of a stage recompute together") {
    tight.job.parallelism.schedule = "interleaved-1f1b";
    for (auto& n : tight.nodes) n.memory_bytes = memory + 300 * mebibyte;
    tight.job.training.recompute = recompute_rule::never;
    CHECK_THAT(tight.failed().text, Catch::Contains("training.recompute"));
    tight.job.training.recompute = recompute_rule::as_needed;
    CHECK(first_chain(tight.made())[0].recompute);
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
    cut.present.replicas[0].stages[0].blocks = {0, 5};
    cut.present.replicas[0].stages[1].blocks = {5, 8};
    CHECK(cut.made().shape != cut.present);  // a quarter slower is too much
  }
  SECTION("an arrival that brings less than the pause costs is a spare") {
    workplace grown;
    grown.with(2);
    grown.present = grown.made().shape;
    grown.with(1);
    grown.profile.link_latency = 0ns;
    grown.profile.link_bytes_per_s = 1e6;  // a third of the state takes 38 s, activations nothing
    for (auto& b : grown.profile.blocks) b.boundary_bytes = 0;
    grown.present = {{{{{node_id{1}, {0, 4}}, {node_id{2}, {4, 8}}}, {0, 16}}}};
    grown.job.nodes.mean_life = 1h;
    CHECK(grown.made().spares.empty());
    grown.job.nodes.mean_life = 10s;
    grown.job.checkpoint.every = 1;
    auto made = grown.made();
    CHECK(made.shape == grown.present);
    CHECK_THAT(made.reason, Catch::Contains("the pause of moving state to it would cost more"));
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
    any.job.training.recompute = recompute_rule{static_cast<std::uint8_t>(random.below(3))};
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
          auto least = stage_bytes(any.profile, s.blocks, 1, 1, recomputes(s, any.job));
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
