#include "telemetry/console.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>

namespace shoal::telemetry {

namespace {

// What is written to a FILE, as text.
class capture {
public:
  capture() : file(::open_memstream(&data_, &size_)) {}
  ~capture() {
    std::fclose(file);
    std::free(data_);
  }
  std::string text() {
    std::fflush(file);
    return {data_, size_};
  }

private:
  char* data_ = nullptr;
  std::size_t size_ = 0;

public:
  std::FILE* file;
};

progress at(std::uint64_t step) {
  progress p;
  p.step = step;
  p.steps = 9;
  return p;
}

}  // namespace

TEST_CASE("elsewhere than on a terminal there are plain lines, two a second", "[telemetry]") {
  capture out;
  console c(out.file, {});
  c.step(at(1), 100.0);
  c.step(at(2), 100.1);
  c.step(at(3), 100.6);
  c.event("node 2 has joined");
  c.event("");
  c.step(at(9), 100.7);
  c.close();
  CHECK(out.text() ==
        text_of(at(1)) + "\n" + text_of(at(3)) + "\nnode 2 has joined\n" + text_of(at(9)) + "\n");
}

TEST_CASE("on a terminal one line is rewritten and events stay above it", "[telemetry]") {
  capture out;
  console c(out.file, {.terminal = true, .width = 30});
  c.step(at(1), 100.0);
  c.step(at(2), 100.1);
  c.event("node 2 has joined");
  c.step(at(3), 100.2);
  c.close();
  auto line = [](std::uint64_t step) { return "\r" + text_of(at(step)).substr(0, 29) + "\033[K"; };
  CHECK(out.text() == line(1) + line(2) + "\r\033[Knode 2 has joined\n" + line(3) + "\n");
}

TEST_CASE("quiet shows errors only", "[telemetry]") {
  capture out;
  console c(out.file, {.quiet = true});
  c.step(at(1), 100.0);
  c.event("node 2 has joined");
  c.error("the disk is full");
  CHECK(out.text() == "the disk is full\n");
}

TEST_CASE("a file is no terminal and gets no colour", "[telemetry]") {
  capture out;
  auto options = console_options_for(stdin, false);
  auto* null = std::fopen("/dev/null", "w");
  options = console_options_for(null, true);
  std::fclose(null);
  CHECK_FALSE(options.terminal);
  CHECK_FALSE(options.color);
  CHECK(options.quiet);
}

}  // namespace shoal::telemetry
