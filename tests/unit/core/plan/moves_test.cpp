#include "core/plan/moves.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "base/rng.hpp"

using namespace shoal;
using namespace shoal::core::planning;

namespace {

using table = std::vector<std::vector<std::int64_t>>;

std::int64_t worth(const table& values, const std::vector<std::size_t>& columns) {
  std::int64_t sum = 0;
  for (std::size_t row = 0; row < values.size(); ++row) {
    auto value = values[row][columns[row]];
    if (value < 0) return -1;
    sum += value;
  }
  return sum;
}

}  // namespace

TEST_CASE("places go to nodes so that the sum is the largest possible", "[core][plan]") {
  rng random(4);
  for (int i = 0; i < 500; ++i) {
    auto rows = 1 + random.below(5), columns = rows + random.below(3);
    table values(rows, std::vector<std::int64_t>(columns));
    for (auto& row : values)
      for (auto& value : row)
        value = random.below(5) == 0
                  ? -1
                  : std::int64_t(random.below(random.below(2) == 0 ? 3 : 1'000'000'000'000));
    for (std::size_t row = 0; row < rows; ++row)  // some way must be left
      values[row][row] = std::max<std::int64_t>(0, values[row][row]);

    std::vector<std::size_t> order(columns);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::int64_t best = -1;
    do best = std::max(best, worth(values, order));
    while (std::next_permutation(order.begin(), order.end()));

    auto chosen = assign(values);
    auto sorted = chosen;
    std::sort(sorted.begin(), sorted.end());
    REQUIRE(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
    REQUIRE(worth(values, chosen) == best);
  }
}

TEST_CASE("nothing to assign gives nothing", "[core][plan]") {
  CHECK(assign({}).empty());
  CHECK(assign({{5}}) == std::vector<std::size_t>{0});
}
