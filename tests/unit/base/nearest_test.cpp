#include "base/nearest.hpp"

#include <vector>

#include <catch2/catch.hpp>

using namespace shoal;

TEST_CASE("the edit distance counts letters inserted, deleted, changed and swapped", "[base]") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("gpt2", "gpt3") == 1);
  CHECK(edit_distance("lama", "llama") == 1);
  CHECK(edit_distance("ab", "ba") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("the nearest name is the first of equals, and empty without candidates", "[base]") {
  std::vector<std::string> names{"gpt2", "llama", "text"};
  CHECK(nearest_name("lamma", names) == "llama");
  CHECK(nearest_name("gpt", names) == "gpt2");
  CHECK(nearest_name("x", std::vector<std::string>{"a", "b"}) == "a");
  CHECK(nearest_name("x", {}).empty());
}
