#include "core/samples/samples.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <numeric>

using namespace shoal;
using namespace shoal::core;

namespace {

std::vector<std::uint64_t> permutation(std::uint64_t seed, std::uint64_t epoch,
                                       std::uint64_t count) {
  std::vector<std::uint64_t> order(count);
  for (std::uint64_t i = 0; i < count; ++i) order[i] = shuffled(seed, epoch, count, i);
  return order;
}

std::vector<std::uint64_t> first_numbers(std::uint64_t count) {
  std::vector<std::uint64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0u);
  return numbers;
}

}  // namespace

TEST_CASE("each epoch is a permutation of the samples", "[core][samples]") {
  for (std::uint64_t count : {1, 2, 3, 4, 5, 7, 15, 16, 17, 63, 64, 65, 100, 255, 256, 257, 4099})
    for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
      auto order = permutation(42, epoch, count);
      std::sort(order.begin(), order.end());
      CAPTURE(count, epoch);
      REQUIRE(order == first_numbers(count));
    }
}

TEST_CASE("seed and epoch name the permutation", "[core][samples]") {
  auto order = permutation(1, 0, 1000);
  CHECK(order == permutation(1, 0, 1000));
  CHECK(order != permutation(2, 0, 1000));
  CHECK(order != permutation(1, 1, 1000));
  CHECK(order != first_numbers(1000));
  // Seed and epoch are not merely added up.
  CHECK(permutation(1, 2, 1000) != permutation(2, 1, 1000));
}

TEST_CASE("the order of samples never changes between versions", "[core][samples]") {
  // Checkpoints hold a step, not an order: these numbers are part of their format.
  CHECK(permutation(1, 0, 10) == std::vector<std::uint64_t>{8, 9, 6, 3, 0, 4, 5, 7, 2, 1});
  CHECK(shuffled(7, 3, 1'000'003, 123'456) == 865474);
}

TEST_CASE("over epochs every sample comes at every place about equally often", "[core][samples]") {
  for (std::uint64_t count : {3u, 6u, 10u}) {
    const std::uint64_t epochs = 6000;
    std::vector<std::vector<double>> seen(count, std::vector<double>(count, 0));
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch)
      for (std::uint64_t i = 0; i < count; ++i) ++seen[i][shuffled(5, epoch, count, i)];
    double expected = double(epochs) / double(count), chi_square = 0;
    for (auto& row : seen)
      for (auto times : row) chi_square += (times - expected) * (times - expected) / expected;
    auto freedom = double((count - 1) * (count - 1));
    CAPTURE(count, chi_square, freedom);
    CHECK(chi_square < freedom + 5 * std::sqrt(2 * freedom));
  }
}

TEST_CASE("neighbours are torn apart", "[core][samples]") {
  auto order = permutation(3, 0, 10'000);
  std::size_t still_neighbours = 0;
  for (std::size_t i = 1; i < order.size(); ++i)
    if (order[i] == order[i - 1] + 1) ++still_neighbours;
  CHECK(still_neighbours < 10);  // one is expected
}

TEST_CASE("every sample is used once an epoch, whatever the steps' size", "[core][samples]") {
  // 7 x 3 = 21 positions a step against 50 samples: epochs end in the middle of micro-batches.
  sample_order order{.seed = 9, .count = 50, .micro_batches = 7, .micro_batch_size = 3};
  std::vector<std::uint64_t> stream;
  for (step_id step{1}; step.value <= 50; step = step.next())
    for (micro_batch_index g = 0; g < 7; ++g)
      for (auto sample : samples_of(order, step, g)) stream.push_back(sample);
  REQUIRE(stream.size() == 21 * 50);
  for (std::size_t epoch = 0; epoch < 21; ++epoch) {
    std::vector<std::uint64_t> used(stream.begin() + epoch * 50, stream.begin() + (epoch + 1) * 50);
    CHECK(used == permutation(9, epoch, 50));
    std::sort(used.begin(), used.end());
    REQUIRE(used == first_numbers(50));
  }
}

TEST_CASE("a micro-batch larger than the data set wraps into the next epochs", "[core][samples]") {
  sample_order order{.seed = 1, .count = 2, .micro_batches = 1, .micro_batch_size = 6};
  std::map<std::uint64_t, int> times;
  for (auto sample : samples_of(order, step_id{1}, 0)) ++times[sample];
  CHECK(times == std::map<std::uint64_t, int>{{0, 3}, {1, 3}});
}

TEST_CASE("a micro-batch's samples do not depend on what was asked before", "[core][samples]") {
  sample_order order{.seed = 4, .count = 999, .micro_batches = 8, .micro_batch_size = 4};
  auto later = samples_of(order, step_id{1000}, 5);
  for (micro_batch_index g = 8; g-- > 0;) samples_of(order, step_id{3}, g);
  CHECK(samples_of(order, step_id{1000}, 5) == later);
}

TEST_CASE("validation samples come in order and wrap around", "[core][samples]") {
  sample_order order{.seed = 8, .count = 5, .micro_batches = 4, .micro_batch_size = 3};
  CHECK(validation_samples_of(order, 0) == std::vector<std::uint64_t>{0, 1, 2});
  CHECK(validation_samples_of(order, 1) == std::vector<std::uint64_t>{3, 4, 0});
  CHECK(validation_samples_of(order, 4) == std::vector<std::uint64_t>{2, 3, 4});
}
