#include "storage/durable_file.hpp"

#include <catch2/catch.hpp>

#include <cerrno>
#include <filesystem>

#include <sys/stat.h>

#include "unit/storage/fault_files.hpp"
#include "unit/storage/samples.hpp"

using namespace shoal;
using namespace shoal::storage;
using namespace shoal::test;

namespace {

std::string as_text(const core::shared_bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data), bytes.size};
}

}  // namespace

TEST_CASE("a file is made durable by its calls in this order", "[storage]") {
  fault_files files;
  REQUIRE(write_durably(files, "/x", "hello"));
  CHECK(files.calls() == std::vector<std::string>{"create", "allocate", "write", "sync", "close",
                                                  "rename", "sync_folder"});
  files.restart(memory::synced);
  CHECK(files.contents() == std::map<std::string, std::string>{{"/x", "hello"}});
}

TEST_CASE("the real file system makes the same file", "[storage]") {
  temporary_folder folder;
  auto& files = real_file_system();
  REQUIRE(write_durably(files, folder / "x", "hello"));
  REQUIRE(write_durably(files, folder / "x", "hello, again"));
  REQUIRE(write_durably(files, folder / "empty", ""));
  CHECK(read_text(folder / "x") == "hello, again");
  const auto whole = read_whole(files, folder / "x", 12);
  REQUIRE(whole);
  CHECK(as_text(*whole) == "hello, again");
  CHECK(read_whole(files, folder / "empty", 0)->size == 0);
  std::vector<folder_entry> entries;
  REQUIRE(files.list(folder.path(), entries) == 0);
  CHECK(entries.size() == 2);
}

TEST_CASE("a file being replaced is the old or the new one after a crash at any call",
          "[storage]") {
  for (auto how : {fault::crash, fault::crash_after, fault::crash_torn})
    for (auto remembers : {memory::all, memory::synced, memory::some})
      for (std::uint64_t at = 0, done = 0; done == 0; ++at) {
        fault_files files;
        REQUIRE(write_durably(files, "/x", "old"));
        files.plan(at, how);
        const auto written = write_durably(files, "/x", "the new one");
        if (!files.crashed() && written) done = 1;
        files.restart(remembers, at);
        INFO("crash " << int(how) << " at call " << at << ", disk " << int(remembers));
        const auto text = as_text(*read_whole(files, "/x", 100));
        CHECK((text == "old" || text == "the new one"));
        if (written) CHECK(text == "the new one");
        REQUIRE(remove_stale_files(files, "/"));
        CHECK(files.contents().size() == 1);
      }
}

TEST_CASE("a failed write leaves the old file and nothing else, and says what to do", "[storage]") {
  const std::vector<std::pair<int, errc>> numbers{{ENOSPC, errc::no_space},
                                                  {EDQUOT, errc::no_space},
                                                  {EIO, errc::io},
                                                  {EACCES, errc::no_permission},
                                                  {EROFS, errc::no_permission}};
  for (auto [number, code] : numbers)
    for (std::uint64_t at = 0; at < 6; ++at) {  // the last call, sync_folder, is a case of its own
      fault_files files;
      REQUIRE(write_durably(files, "/x", "old"));
      files.plan(at, fault::error, number);
      const auto written = write_durably(files, "/x", "the new one");
      INFO("errno " << number << " at call " << at);
      REQUIRE_FALSE(written);
      CHECK(written.error().code == code);
      CHECK_THAT(written.error().text, Catch::Contains("/x"));
      CHECK_THAT(written.error().text, Catch::Contains("; "));
      CHECK(files.contents() == std::map<std::string, std::string>{{"/x", "old"}});
    }
}

TEST_CASE("a failed sync is never tried again on the same file", "[storage]") {
  fault_files files;
  files.plan(3, fault::error, EIO);
  REQUIRE_FALSE(write_durably(files, "/x", "hello"));
  CHECK(std::ranges::count(files.calls(), "sync") == 1);
  CHECK(files.contents().empty());
}

TEST_CASE("short writes are carried on", "[storage]") {
  fault_files files;
  files.plan(2, fault::short_write);
  REQUIRE(write_durably(files, "/x", "hello"));
  CHECK(files.contents() == std::map<std::string, std::string>{{"/x", "hello"}});
}

TEST_CASE("a full disk is found before the first byte is written", "[storage]") {
  fault_files files;
  files.set_capacity(4);
  const auto written = write_durably(files, "/x", "hello");
  REQUIRE_FALSE(written);
  CHECK(written.error().code == errc::no_space);
  CHECK(std::ranges::count(files.calls(), "write") == 0);
  CHECK(files.contents().empty());
}

TEST_CASE("stale temporary files go, those being written stay", "[storage]") {
  temporary_folder folder;
  auto& files = real_file_system();
  write_text(folder / "x.tmp.1.0", "left by a crash");
  write_text(folder / "x", "whole");
  {
    auto writing = *durable_file::create(files, folder / "y", 5);
    CHECK(*remove_stale_files(files, folder.path()) == 1);
    CHECK_FALSE(std::filesystem::exists(folder / "x.tmp.1.0"));
    REQUIRE(writing.append(std::as_bytes(std::span(std::string_view("hello")))));
    REQUIRE(writing.commit());
  }
  CHECK(read_text(folder / "x") == "whole");
  CHECK(read_text(folder / "y") == "hello");
  { auto abandoned = *durable_file::create(files, folder / "z", 5); }
  std::vector<folder_entry> entries;
  REQUIRE(files.list(folder.path(), entries) == 0);
  CHECK(entries.size() == 2);
}

TEST_CASE("links, pipes and folders are not read as files", "[storage]") {
  temporary_folder folder;
  auto& files = real_file_system();
  write_text(folder / "real", "secret");
  std::filesystem::create_symlink(folder / "real", folder / "link");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(read_whole(files, folder / "link", 100).error().code == errc::damaged);
  CHECK_FALSE(read_whole(files, folder / "pipe", 100));
  CHECK_FALSE(read_whole(files, folder.path(), 100));
  CHECK(read_whole(files, folder / "nothing", 100).error().code == errc::io);
  CHECK(read_whole(files, folder / "real", 5).error().code == errc::damaged);
}

TEST_CASE("folders are made with those above them, and a file in the way is named", "[storage]") {
  temporary_folder folder;
  auto& files = real_file_system();
  REQUIRE(make_folders(files, folder / "a/b/c"));
  REQUIRE(make_folders(files, folder / "a/b/c"));
  CHECK(std::filesystem::is_directory(folder / "a/b/c"));
  std::filesystem::create_directory_symlink(folder / "a", folder / "link");
  REQUIRE(make_folders(files, folder / "link"));
  write_text(folder / "file", "");
  for (auto* name : {"file", "file/below"}) {
    const auto made = make_folders(files, folder / name);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == errc::no_permission);
    CHECK_THAT(made.error().text, Catch::Contains("a file stands where a folder should"));
  }
}

TEST_CASE("paths are joined and split", "[storage]") {
  CHECK(join("a", "b") == "a/b");
  CHECK(join("a/", "b") == "a/b");
  CHECK(join("/", "b") == "/b");
  CHECK(folder_of("a/b") == "a");
  CHECK(folder_of("a/b/") == "a");
  CHECK(folder_of("/b") == "/");
  CHECK(folder_of("b") == ".");
  CHECK(folder_of("/") == "/");
}
