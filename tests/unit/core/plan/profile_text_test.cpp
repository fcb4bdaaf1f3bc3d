#include "core/plan/profile_text.hpp"

#include <catch2/catch.hpp>
#include <iostream>
#include <iterator>

#include "base/rng.hpp"

using namespace shoal;
using namespace shoal::core::planning;

namespace {

const std::string conv =
  "node1 -- Input -- forward_compute_time=18.0, backward_compute_time=0.0, activation_size=100.0, "
  "parameter_size=0.0\n"
  "node3 -- ReLU(inplace) -- forward_compute_time=1.0, backward_compute_time=2.0, "
  "activation_size=50.0, parameter_size=0.0 -- stage_id=1\n"
  "node2 -- Conv2d(3, 64, kernel_size=(3, 3)) -- forward_compute_time=2.0, "
  "backward_compute_time=4.5, activation_size=[40.0; 5.0], parameter_size=7.0\n"
  "node4 -- Add -- forward_compute_time=1.0, backward_compute_time=1.0, activation_size=9.0, "
  "parameter_size=0.0\n";
const std::string edges =
  "\tnode1 -- node2\n\tnode2 -- node3\n\tnode3 -- node4\n\tnode2 -- node4\n";

std::string refusal(const std::string& text) {
  auto read = parse_profile_text(text);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == errc::config);
  return read.error().text;
}

}  // namespace

TEST_CASE("a graph becomes a chain in topological order without its inputs",
          "[core][plan][profile]") {
  auto read = parse_profile_text(conv + edges);
  REQUIRE(read);
  REQUIRE(read->rows.size() == 3);
  CHECK(read->rows[0].id == "node2");
  CHECK(read->rows[1].id == "node3");
  CHECK(read->rows[0].description == "Conv2d(3, 64, kernel_size=(3, 3))");
  CHECK(read->rows[0].activation_bytes == 45);
  CHECK(read->rows[0].parameter_bytes == 7);
  // What node2 makes is used by node4 too, and so crosses both borders.
  CHECK(read->rows[0].crossing_bytes == 0);
  CHECK(read->rows[1].crossing_bytes == 45);
  CHECK(read->rows[2].crossing_bytes == 95);
  CHECK(read->suspicions.empty());
  CHECK(blocks_of(*read)[0].backward == 4.5);
  CHECK(parse_profile_text(conv + "\r\n" + edges + "\n"));
}

TEST_CASE("forward times without a device sync are suspicious, and so are lost backward times",
          "[core][plan][profile]") {
  auto text = conv + edges;
  text.replace(text.find("=4.5"), 4, "=33.");
  auto read = parse_profile_text(text);
  REQUIRE(read);
  REQUIRE(read->suspicions.size() == 1);
  CHECK_THAT(read->suspicions[0], Catch::Contains("line 3, node2") &&
                                    Catch::Contains("16.5 times") &&
                                    Catch::Contains("waiting for the device"));
  text.replace(text.find("=33."), 4, "=0.1");
  CHECK_THAT(parse_profile_text(text)->suspicions.at(0), Catch::Contains("neighbour"));
}

TEST_CASE("what is wrong with a profile is told with its line", "[core][plan][profile]") {
  auto changed = [&](std::string_view from, std::string_view to) {
    auto text = conv + edges;
    auto at = text.find(from);
    REQUIRE(at != text.npos);
    return refusal(text.replace(at, from.size(), to));
  };
  CHECK_THAT(changed("=4.5", "=nan"),
             Catch::Contains("line 3") && Catch::Contains("backward_compute_time is \"nan\""));
  CHECK_THAT(changed("=4.5", "=-1"), Catch::Contains("0 to 1e15"));
  CHECK_THAT(changed("=4.5", "=1e300"), Catch::Contains("0 to 1e15"));
  CHECK_THAT(changed("=4.5", "=four"), Catch::Contains("not a number"));
  CHECK_THAT(changed("5.0], ", "5.0, "), Catch::Contains("lacks its ]"));
  CHECK_THAT(changed("backward", "bckward"),
             Catch::Contains("expected backward_compute_time=NUMBER"));
  CHECK_THAT(changed("parameter_size=7.0", "parameter_size=7.0, x=1"),
             Catch::Contains("where the line should end"));
  CHECK_THAT(changed("node3 -- R", "node1 -- R"),
             Catch::Contains("line 2") && Catch::Contains("there before, in line 1"));
  CHECK_THAT(changed("\tnode3 -- node4", "\tnode3 -- node9"),
             Catch::Contains("line 7") && Catch::Contains("\"node9\", which is no node"));
  CHECK_THAT(changed("\tnode3 -- node4", "\tnode3"), Catch::Contains("is no edge"));
  CHECK_THAT(changed("\tnode2 -- node4", "\tnode4 -- node2"), Catch::Contains("cycle"));
  CHECK_THAT(changed("node4 -- Add", "node4"), Catch::Contains("neither a node"));
  CHECK_THAT(refusal(""), Catch::Contains("no nodes"));
  CHECK_THAT(refusal(conv.substr(0, conv.find('\n'))), Catch::Contains("inputs only"));
  CHECK_THAT(refusal(std::string(profile_text_bytes_max + 1, 'x')), Catch::Contains("is the most"));
}

TEST_CASE("a profile of changed bytes is read or refused, nothing else", "[core][plan][profile]") {
  constexpr std::uint64_t seed = 21;
  std::cout << "profile_text_test: seed " << seed << "\n";
  rng random(seed);
  std::string_view pieces[] = {" -- ", "\t", "\n", "[", "; ", "=", "node2", "1e309", "-", "\0"};
  int good = 0;
  for (int i = 0; i < 5000; ++i) {
    auto text = conv + edges;
    for (auto n = 1 + random.below(4); n > 0; --n) {
      auto at = random.below(text.size());
      switch (random.below(4)) {
        case 0:
          text[at] = char(random.below(256));
          break;
        case 1:
          text.erase(at, 1 + random.below(30));
          break;
        case 2:
          text.insert(at, pieces[random.below(std::size(pieces))]);
          break;
        default:
          text.insert(at, text.substr(random.below(text.size()), random.below(200)));
      }
    }
    auto read = parse_profile_text(text);
    if (!read) {
      REQUIRE(read.error().code == errc::config);
      continue;
    }
    ++good;
    REQUIRE_FALSE(read->rows.empty());
    for (auto& row : read->rows) {
      REQUIRE(row.crossing_bytes >= 0);
      REQUIRE(row.forward_ms >= 0);
    }
  }
  CHECK(good > 100);
}
