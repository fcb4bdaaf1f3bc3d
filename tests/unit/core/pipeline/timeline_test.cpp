#include "core/pipeline/timeline.hpp"

#include "unit/core/pipeline/lab.hpp"

using namespace shoal;
using namespace shoal::core;

namespace {

simulation two_ranks() {
  auto costs = uniform(2, 1, 2);
  costs.timeline = true;
  costs.stages[1].input_bytes = 1000;
  return run_of(made({.name = "1f1b", .ranks = 2, .micro_batches = 2}), costs);
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("a picture has a line a rank and a letter for each unit of time", "[core][pipeline]") {
  CHECK(picture_of(two_ranks(), 9) == "0   FF..BB.BB\n1   .FBBFBB..\n");
  // Half as many columns show what takes most of each.
  auto small = picture_of(two_ranks(), 3);
  CHECK(count(small, "\n") == 2);
  CHECK(picture_of(simulation(), 10).empty());
}

TEST_CASE("pictures and traces hold every cell once", "[core][pipeline]") {
  auto step = two_ranks();
  auto svg = svg_of(step);
  CHECK(svg.starts_with("<svg"));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(count(svg, "<rect") == 8);
  CHECK(count(svg, "<title>0B1 ") == 1);
  auto trace = trace_of(step);
  CHECK(count(trace, "\"ph\":\"X\"") == 8 + 4);  // and what is sent: two down, two up
  CHECK(count(trace, "\"name\":\"send 0F1\"") == 1);
  CHECK(count(trace, "\"ts\":1000.000") >= 1);
  CHECK(trace.starts_with("["));
  CHECK(trace.ends_with("]\n"));
}
