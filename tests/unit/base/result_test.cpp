#include "base/result.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <memory>
#include <set>

#include "base/f64.hpp"
#include "base/strong_id.hpp"

using namespace shoal;

namespace {

result<int> half(int x) {
  if (x % 2 != 0) return {errc::usage, std::to_string(x) + " is odd"};
  return x / 2;
}

result<int> quarter(int x) {
  TRY(auto once, half(x));
  TRY(auto twice, half(once));
  return twice;
}

result<void> must_halve(int x) {
  TRY_VOID(half(x));
  return {};
}

}  // namespace

TEST_CASE("a result is a value or an error", "[base][result]") {
  CHECK(half(4).value() == 2);
  auto failed = half(3);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == errc::usage);
  CHECK(failed.error().text == "3 is odd");
  CHECK(in("counting", failed.error()).text == "counting: 3 is odd");
}

TEST_CASE("TRY passes the first error on", "[base][result]") {
  CHECK(quarter(8).value() == 2);
  CHECK(quarter(6).error().text == "3 is odd");
  CHECK(quarter(5).error().text == "5 is odd");
  CHECK(must_halve(2));
  CHECK(must_halve(1).error().text == "1 is odd");
}

TEST_CASE("a result may hold what can only be moved", "[base][result]") {
  result<std::unique_ptr<int>> made = std::make_unique<int>(5);
  auto taken = *std::move(made);
  CHECK(*taken == 5);
}

TEST_CASE("every errc has a name of its own and an exit code that says failure", "[base][result]") {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(errc::internal); ++code) {
    names.insert(to_string(static_cast<errc>(code)));
    CHECK(exit_code(static_cast<errc>(code)) > 1);
    CHECK(exit_code(static_cast<errc>(code)) < 126);  // above, shells speak of signals
  }
  CHECK(names.size() == static_cast<std::size_t>(errc::internal) + 1);
  CHECK(to_string(errc::checkpoint_unusable) == "checkpoint_unusable");
  CHECK(retryable(errc::unreachable));
  CHECK_FALSE(retryable(errc::config));
}

TEST_CASE("a double travels as its bits", "[base][f64]") {
  for (double x : {0.0, -0.0, 1.5, std::numeric_limits<double>::infinity(), 5e-324})
    CHECK(std::bit_cast<std::uint64_t>(f64(x).value()) == std::bit_cast<std::uint64_t>(x));
  auto nan = std::bit_cast<double>(std::uint64_t{0x7ff8'0000'0000'beef});
  CHECK(f64(nan) == f64(nan));
  CHECK(f64(nan).bits == 0x7ff8'0000'0000'beef);
  CHECK_FALSE(f64(0.0) == f64(-0.0));
}

TEST_CASE("ids count from none", "[base][ids]") {
  step_id none;
  CHECK_FALSE(none);
  CHECK(none.next() == step_id{1});
  CHECK(none.next().before() == none);
  CHECK(step_id{3} < step_id{4});
  static_assert(!std::is_convertible_v<step_id, view_id>);
  static_assert(!std::is_constructible_v<node_id, step_id>);
  CHECK(std::hash<node_id>{}(node_id{1}) != std::hash<node_id>{}(node_id{2}));
}
