#include "storage/ledger.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <filesystem>

#include <rocksdb/db.h>
#include <sys/resource.h>

#include "unit/storage/samples.hpp"

using namespace shoal;
using namespace shoal::storage;
using namespace shoal::test;

namespace {

using catalogue = std::vector<std::pair<step_id, std::string>>;

/// While it lives, files cannot grow beyond `bytes`: the nearest to a full disk without being root.
/// With `heals`, only the first write that goes beyond fails.
class file_size_limit {
public:
  explicit file_size_limit(rlim_t bytes, bool heals = false) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    before_ = std::signal(SIGXFSZ, heals ? [](int) { lift(); } : SIG_IGN);
    const rlimit small{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~file_size_limit() {
    lift();
    std::signal(SIGXFSZ, before_);
  }

private:
  static void lift() { ::setrlimit(RLIMIT_FSIZE, &old_); }

  static inline rlimit old_{};  // for the signal handler
  void (*before_)(int);
};

/// The log that holds what was written last.
std::string newest_log(const std::string& folder) {
  std::string newest;
  for (auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".log" && entry.path().string() > newest)
      newest = entry.path().string();
  REQUIRE_FALSE(newest.empty());
  return newest;
}

}  // namespace

TEST_CASE("the ledger keeps what was put", "[storage]") {
  temporary_folder place;
  {
    auto book = *ledger::open(place / "run");
    CHECK(*book->get_state() == std::nullopt);
    CHECK(book->checkpoints()->empty());
    REQUIRE(book->put_state("term 1"));
    REQUIRE(book->put_state(std::string("term 2\0\n", 8)));
    REQUIRE(book->put_checkpoint({300}, "c"));
    REQUIRE(book->put_checkpoint({20}, "b"));
    REQUIRE(book->put_checkpoint({1}, "a"));
    REQUIRE(book->erase_checkpoint({20}));
    REQUIRE(book->erase_checkpoint({21}));
  }
  auto book = *ledger::open(place / "run");
  CHECK(*book->get_state() == std::string("term 2\0\n", 8));
  CHECK(*book->checkpoints() == catalogue{{{1}, "a"}, {{300}, "c"}});
  REQUIRE(book->rebuild({{{7}, "seven"}, {{300}, "new"}}));
  CHECK(*book->checkpoints() == catalogue{{{7}, "seven"}, {{300}, "new"}});
  CHECK(*book->get_state() == std::string("term 2\0\n", 8));
}

TEST_CASE("a second supervisor in the same folder is refused by name", "[storage]") {
  temporary_folder place;
  auto book = *ledger::open(place.path());
  const auto second = ledger::open(place.path());
  REQUIRE_FALSE(second);
  CHECK(second.error().code == errc::refused);
  CHECK_THAT(second.error().text, Catch::Contains("another supervisor runs in " + place.path()));
  CHECK_THAT(second.error().text,
             Catch::Contains("process " + std::to_string(::getpid()) + " on "));
  REQUIRE(book->put_state("still works"));
  book.reset();
  CHECK(*(*ledger::open(place.path()))->get_state() == "still works");
}

TEST_CASE("a value that was changed or moved inside a sound database is found", "[storage]") {
  temporary_folder place;
  {
    auto book = *ledger::open(place.path());
    REQUIRE(book->put_state("state"));
    REQUIRE(book->put_checkpoint({1}, "one"));
    REQUIRE(book->put_checkpoint({2}, "two"));
  }
  auto change = [&](auto edit) {
    rocksdb::DB* raw = nullptr;
    REQUIRE(rocksdb::DB::Open({}, place / "ledger", &raw).ok());
    edit(*raw);
    delete raw;
  };
  std::string value;
  SECTION("a bit flipped") {
    change([&](auto& db) {
      REQUIRE(db.Get({}, "ledger/state", &value).ok());
      value.back() ^= 1;
      db.Put({}, "ledger/state", value);
    });
    CHECK(ledger::open(place.path()).error().code == errc::damaged);
  }
  SECTION("cut short") {
    change([&](auto& db) { db.Put({}, "ledger/state", "x"); });
    CHECK(ledger::open(place.path()).error().code == errc::damaged);
  }
  SECTION("under another key") {
    change([&](auto& db) {
      REQUIRE(db.Get({}, "checkpoint/0000000000000001", &value).ok());
      db.Put({}, "checkpoint/0000000000000002", value);
    });
    auto book = *ledger::open(place.path());
    CHECK(book->checkpoints().error().code == errc::damaged);
    REQUIRE(book->rebuild({{{1}, "one"}}));
    CHECK(book->checkpoints()->size() == 1);
    CHECK(*book->get_state() == "state");
  }
}

TEST_CASE("a log that ends in the middle of a record opens with what was acknowledged",
          "[storage]") {
  temporary_folder place;
  std::string log;
  std::size_t acknowledged = 0;
  {
    auto book = *ledger::open(place / "run");
    REQUIRE(book->put_state("before"));
    log = newest_log(place / "run/ledger");
    acknowledged = std::filesystem::file_size(log);
    const auto sequence = read_text(place / "run/ledger.sequence");
    REQUIRE(book->put_state("after"));
    write_text(place / "run/ledger.sequence", sequence);  // "after" was never acknowledged
  }
  const auto whole = read_text(log);
  REQUIRE(whole.size() > acknowledged);
  for (auto size = acknowledged; size <= whole.size(); ++size) {
    temporary_folder copy;
    std::filesystem::copy(place / "run", copy.path(), std::filesystem::copy_options::recursive);
    const auto name = std::filesystem::path(log).filename().string();
    write_text(copy / ("ledger/" + name), whole.substr(0, size));
    INFO(size << " of " << whole.size() << " bytes");
    const auto book = ledger::open(copy.path());
    REQUIRE(book);
    CHECK(*(*book)->get_state() == (size == whole.size() ? "after" : "before"));
  }
}

TEST_CASE("a flipped bit in the log is an error, never another state", "[storage]") {
  temporary_folder place;
  std::string log;
  {
    auto book = *ledger::open(place / "run");
    for (auto* state : {"one", "two", "three"}) REQUIRE(book->put_state(state));
    log = newest_log(place / "run/ledger");
  }
  const auto whole = read_text(log);
  const auto name = std::filesystem::path(log).filename().string();
  for (std::size_t byte = 0; byte < whole.size(); ++byte) {
    temporary_folder copy;
    std::filesystem::copy(place / "run", copy.path(), std::filesystem::copy_options::recursive);
    auto flipped = whole;
    flipped[byte] = static_cast<char>(flipped[byte] ^ 0x10);
    write_text(copy / ("ledger/" + name), flipped);
    const auto book = ledger::open(copy.path());
    INFO("byte " << byte << " of " << whole.size());
    if (book)
      CHECK(*(*book)->get_state() == "three");
    else
      CHECK(book.error().code == errc::damaged);
  }
}

TEST_CASE("a ledger without its last acknowledged state is found out", "[storage]") {
  temporary_folder place;
  REQUIRE((*ledger::open(place / "run"))->put_state("one"));
  std::filesystem::copy(place / "run/ledger", place / "old",
                        std::filesystem::copy_options::recursive);
  REQUIRE((*ledger::open(place / "run"))->put_state("two"));
  const auto sequence = read_text(place / "run/ledger.sequence");
  SECTION("the database put back to an older one") {
    std::filesystem::remove_all(place / "run/ledger");
    std::filesystem::rename(place / "old", place / "run/ledger");
    const auto book = ledger::open(place / "run");
    REQUIRE_FALSE(book);
    CHECK_THAT(book.error().text, Catch::Contains("went back to write 1, though write 2"));
  }
  SECTION("the database lost") {
    std::filesystem::remove_all(place / "run/ledger");
    CHECK(ledger::open(place / "run").error().code == errc::damaged);
  }
  SECTION("the sequence flipped or cut") {
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      auto flipped = sequence;
      flipped[i] ^= 1;
      write_text(place / "run/ledger.sequence", flipped);
      CHECK(ledger::open(place / "run").error().code == errc::damaged);
      write_text(place / "run/ledger.sequence", sequence.substr(0, i));
      CHECK(ledger::open(place / "run").error().code == errc::damaged);
    }
  }
  SECTION("the sequence one behind, as a crash between the two writes leaves it") {
    REQUIRE((*ledger::open(place / "run"))->put_state("three"));
    write_text(place / "run/ledger.sequence", sequence);
    auto book = *ledger::open(place / "run");
    CHECK(*book->get_state() == "three");
    REQUIRE(book->put_state("four"));
    book.reset();
    CHECK(*(*ledger::open(place / "run"))->get_state() == "four");
  }
}

TEST_CASE("after a full disk the ledger works again without a restart", "[storage]") {
  temporary_folder place;
  auto book = *ledger::open(place.path());
  REQUIRE(book->put_state("before"));
  result<void> full;
  {
    const file_size_limit limit(64);
    full = book->put_state(std::string(1000, 'x'));
  }
  REQUIRE_FALSE(full);
  CHECK(full.error().code == errc::no_space);
  const auto state = book->get_state();
  REQUIRE(state);
  CHECK(*state == "before");
  REQUIRE(book->put_state("after"));
  book.reset();
  CHECK(*(*ledger::open(place.path()))->get_state() == "after");
}

TEST_CASE("a failure of the disk that passes is not even noticed", "[storage]") {
  temporary_folder place;
  auto book = *ledger::open(place.path());
  REQUIRE(book->put_state("before"));
  result<void> put;
  {
    const file_size_limit limit(64, /*heals=*/true);
    put = book->put_state(std::string(1000, 'x'));
  }
  REQUIRE(put);
  CHECK(*book->get_state() == std::string(1000, 'x'));
}

TEST_CASE("a folder that cannot hold a ledger is named", "[storage]") {
  temporary_folder place;
  write_text(place / "file", "");
  const auto book = ledger::open(place / "file");
  REQUIRE_FALSE(book);
  CHECK(book.error().code == errc::no_permission);
  CHECK_THAT(book.error().text, Catch::Contains(place / "file"));
}
