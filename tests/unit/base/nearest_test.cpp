#include "base/nearest.hpp"

#include <array>
#include <catch2/catch.hpp>

using namespace shoal;

TEST_CASE("an edit is a letter more, less, other, or swapped", "[base][nearest]") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("steps", "steps") == 0);
  CHECK(edit_distance("step", "steps") == 1);
  CHECK(edit_distance("steps", "step") == 1);
  CHECK(edit_distance("steqs", "steps") == 1);
  CHECK(edit_distance("setps", "steps") == 1);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("the nearest name is found, the first of equals", "[base][nearest]") {
  std::array<std::string, 3> names{"gpt2", "llama", "conv"};
  CHECK(nearest_name("gtp2", names) == "gpt2");
  CHECK(nearest_name("lama", names) == "llama");
  CHECK(nearest_name("xxxxxxxxx", names) == "gpt2");
  CHECK(nearest_name("x", {}).empty());
}
