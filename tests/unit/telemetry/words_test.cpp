#include "telemetry/words.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace shoal::telemetry {

TEST_CASE("numbers have three digits and a unit", "[telemetry]") {
  CHECK(short_number(0) == "0");
  CHECK(short_number(912) == "912");
  CHECK(short_number(999.4) == "999");
  CHECK(short_number(999.6) == "1.00k");
  CHECK(short_number(1234) == "1.23k");
  CHECK(short_number(41234) == "41.2k");
  CHECK(short_number(412345) == "412k");
  CHECK(short_number(999'600) == "1.00M");
  CHECK(short_number(3'050'000) == "3.05M");
}

TEST_CASE("durations read as people say them", "[telemetry]") {
  CHECK(short_duration(0.42) == "0.42 s");
  CHECK(short_duration(9.996) == "10 s");
  CHECK(short_duration(59.4) == "59 s");
  CHECK(short_duration(192) == "3 min 12 s");
  CHECK(short_duration(7500) == "2 h 05 min");
  CHECK(short_duration(-1) == "?");
  CHECK(short_duration(std::numeric_limits<double>::infinity()) == "?");
}

TEST_CASE("a progress line shows what is known", "[telemetry]") {
  progress p;
  p.step = 7;
  p.steps = 120;
  p.loss = 3.14159;
  p.gradient_norm = 0.5234;
  p.learning_rate = 1e-3;
  CHECK(text_of(p) == "step   7/120  loss 3.1416  norm 0.523  lr 1.00e-03");
  p.tokens_per_s = 41234;
  p.layout = "3 nodes: 2+1";
  p.left_s = 12;
  p.what = core::decision::skip;
  CHECK(text_of(p) ==
        "step   7/120  loss 3.1416  norm 0.523  lr 1.00e-03  skipped  41.2k tok/s  3 nodes: 2+1  "
        "12 s left");
  p.loss = std::nan("");
  CHECK(text_of(p).find("loss nan") != std::string::npos);
}

TEST_CASE("a layout is shown by the depths of its replicas", "[telemetry]") {
  core::layout shape;
  shape.replicas.push_back({{{node_id{1}, {0, 4}}}, {0, 4}});
  CHECK(short_layout(shape) == "1 node");
  shape.replicas.push_back({{{node_id{2}, {0, 2}}, {node_id{3}, {2, 4}}}, {4, 8}});
  CHECK(short_layout(shape) == "3 nodes: 1+2");
}

TEST_CASE("a morph tells cause, shape and the pause by parts", "[telemetry]") {
  morph_record m;
  m.cause = "loss";
  m.reason = "node 3 was lost: connection closed";
  m.nodes_before = 3;
  m.nodes_after = 2;
  m.layout = "1 replica: 1:[0-2] 2:[3-5] x8";
  m.step = 40;
  m.moved_bytes = 3'050'000;
  m.pause_s = 0.42;
  m.parts_s = {{"detect", 0.001}, {"agree", 0.05}};
  CHECK(text_of(m) ==
        "node 3 was lost: connection closed; 3 -> 2 nodes, 1 replica: 1:[0-2] 2:[3-5] x8, on from "
        "step 40, moved 3.05MB; paused 0.42 s (detect 0.001, agree 0.050)");
  m.cause = "start";
  CHECK(text_of(m).find("paused") == std::string::npos);
}

TEST_CASE("what is not finite is named by step, micro-batch and block", "[telemetry]") {
  CHECK(text_of(core::not_finite{3, 5}, 12, core::decision::abort) ==
        "step 12: the loss or a gradient is not finite, first in micro-batch 3, block 5; the job "
        "stops (training.on_not_finite)");
  CHECK(text_of(core::not_finite{3, 5}, 12, core::decision::skip).find("skipped") !=
        std::string::npos);
}

TEST_CASE("the pace follows the last minute and starts anew after a return", "[telemetry]") {
  pace p(100);
  CHECK(p.tokens_per_s() == 0);
  CHECK(p.left_s(10) < 0);
  p.add(1, 1000);
  CHECK(p.left_s(10) < 0);
  p.add(2, 1001);
  p.add(3, 1002);
  CHECK(p.tokens_per_s() == Approx(100));
  CHECK(p.left_s(10) == Approx(7));
  CHECK(p.left_s(3) == 0);
  // Slower for longer than the window: the old speed is forgotten.
  for (int i = 0; i < 40; ++i) p.add(4 + i, 1010 + 10 * i);
  CHECK(p.tokens_per_s() == Approx(10));
  p.add(20, 1500);
  CHECK(p.left_s(30) < 0);
  p.add(21, 1501);
  CHECK(p.tokens_per_s() == Approx(100));
  p.add(22, 1501);
  CHECK(std::isfinite(p.tokens_per_s()));
}

}  // namespace shoal::telemetry
