#include "telemetry/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace shoal::telemetry {

console_options console_options_for(std::FILE* out, bool quiet) {
  console_options options;
  options.quiet = quiet;
  auto fd = ::fileno(out);
  const char* term = std::getenv("TERM");
  options.terminal = ::isatty(fd) == 1 && term != nullptr && std::string_view(term) != "dumb";
  const char* no_color = std::getenv("NO_COLOR");
  options.color = options.terminal && (no_color == nullptr || *no_color == '\0');
  winsize size{};
  if (options.terminal && ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 20)
    options.width = size.ws_col;
  return options;
}

void console::step(const progress& p, double time_s) {
  std::lock_guard lock(mutex_);
  if (options_.quiet) return;
  auto text = text_of(p);
  if (options_.terminal) {
    if (text.size() >= options_.width) text.resize(options_.width - 1);
    std::fprintf(out_, "\r%s\033[K", text.c_str());
    std::fflush(out_);
    open_ = true;
    return;
  }
  constexpr double distance_s = 0.5;
  if (p.step != 1 && p.step != p.steps && time_s - shown_at_ < distance_s && time_s >= shown_at_)
    return;
  shown_at_ = time_s;
  line(text);
}

void console::event(const std::string& sentence) {
  std::lock_guard lock(mutex_);
  if (options_.quiet || sentence.empty()) return;
  clear();
  line(options_.color ? "\033[36m" + sentence + "\033[0m" : sentence);
}

void console::error(const std::string& sentence) {
  std::lock_guard lock(mutex_);
  clear();
  line(options_.color ? "\033[31m" + sentence + "\033[0m" : sentence);
}

void console::close() {
  std::lock_guard lock(mutex_);
  if (open_) std::fputc('\n', out_);
  std::fflush(out_);
  open_ = false;
}

void console::line(const std::string& text) {
  std::fprintf(out_, "%s\n", text.c_str());
  std::fflush(out_);
}

void console::clear() {
  if (open_) std::fputs("\r\033[K", out_);
  open_ = false;
}

}  // namespace shoal::telemetry
