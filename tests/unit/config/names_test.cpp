#include "app/config/names.hpp"

#include <catch2/catch.hpp>

namespace shoal::app {

TEST_CASE("the nearest name is found, and none when all are far", "[config]") {
  std::vector<std::string> names{"training.steps", "training.threads", "job.seed", "job.name"};
  CHECK(nearest("training.step", names) == "training.steps");
  CHECK(nearest("trainnig.steps", names) == "training.steps");
  CHECK(nearest("steps", names) == "training.steps");
  CHECK(nearest("model.seed", names) == "job.seed");
  CHECK(nearest("model.elephant", names) == "");
  CHECK(nearest("", names) == "");
  CHECK(nearest("x", {}) == "");
}

}  // namespace shoal::app
