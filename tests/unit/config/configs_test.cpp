#include <catch2/catch.hpp>
#include <filesystem>

#include "app/config/job_file.hpp"
#include "app/config/job_text.hpp"

namespace shoal::app {

TEST_CASE("every job in configs/ and examples/ loads as it is", "[config]") {
  namespace fs = std::filesystem;
  std::size_t found = 0;
  for (auto* folder : {"configs", "examples"})
    for (auto& file : fs::recursive_directory_iterator(fs::path(SHOAL_SOURCE_DIR) / folder)) {
      if (file.path().extension() != ".toml") continue;
      ++found;
      auto read = read_job(file.path().string(), {});
      INFO(file.path() << ": " << (read ? "" : read.error().text));
      REQUIRE(read);
      auto again = parse_canonical(canonical_text(read->job));
      REQUIRE(again);
      CHECK(canonical_text(*again) == canonical_text(read->job));
    }
  CHECK(found >= 6);
}

}  // namespace shoal::app
