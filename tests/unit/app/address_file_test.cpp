#include "app/address_file.hpp"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

namespace shoal::app {

namespace {

class scratch {
public:
  scratch() {
    std::string name = std::filesystem::temp_directory_path() / "shoal-address-XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~scratch() { std::filesystem::remove_all(path); }
  std::string path;
};

}  // namespace

TEST_CASE("the address of a supervisor is there while it runs, and gone with it", "[app]") {
  scratch at;
  {
    auto file = address_file::write(at.path, {"127.0.0.1", 4711});
    REQUIRE(file);
    auto moved = std::move(*file);
    auto read = read_address(at.path);
    REQUIRE(read);
    CHECK(read->host == "127.0.0.1");
    CHECK(read->port == 4711);
    auto newer = address_file::write(at.path, {"::1", 4712});
    REQUIRE(newer);
    CHECK(read_address(at.path)->host == "::1");
  }
  auto gone = read_address(at.path);
  REQUIRE_FALSE(gone);
  CHECK(gone.error().code == errc::unreachable);
  CHECK(std::filesystem::is_empty(at.path));
}

TEST_CASE("an address file with something else in it is an error that names it", "[app]") {
  scratch at;
  std::ofstream(at.path + "/supervisor.address") << "nonsense\n";
  auto read = read_address(at.path);
  REQUIRE_FALSE(read);
  CHECK(read.error().text.find(at.path + "/supervisor.address: 'nonsense' is not an address") == 0);
}

TEST_CASE("a folder that cannot be written is told as such", "[app]") {
  auto file = address_file::write("/proc/nowhere", {"127.0.0.1", 1});
  REQUIRE_FALSE(file);
  CHECK(file.error().text.find("/proc/nowhere/supervisor.address: cannot be written") == 0);
}

}  // namespace shoal::app
