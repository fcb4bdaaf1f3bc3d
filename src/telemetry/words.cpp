#include "telemetry/words.hpp"

#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace shoal::telemetry {

namespace {

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  std::array<char, 256> buffer{};
  std::va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(buffer.data(), buffer.size(), pattern, arguments);
  va_end(arguments);
  return buffer.data();
}

}  // namespace

std::string short_number(double number) {
  const char* unit = "";
  for (auto* next : {"k", "M", "G", "T"}) {
    if (number < 999.5) break;
    number /= 1000;
    unit = next;
  }
  auto digits = *unit == '\0' || number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
  return format("%.*f%s", digits, number, unit);
}

std::string short_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 9.995) return format("%.2f s", seconds);
  auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 60) return format("%lld s", whole);
  if (whole < 3600) return format("%lld min %02lld s", whole / 60, whole % 60);
  return format("%lld h %02lld min", whole / 3600, whole / 60 % 60);
}

std::string hex_digest(std::uint64_t digest) {
  return format("%016llx", static_cast<unsigned long long>(digest));
}

std::string text_of(const progress& p) {
  auto width = static_cast<int>(std::to_string(p.steps).size());
  auto text =
    format("step %*llu/%llu  loss %.4f  norm %.3g  lr %.2e", width,
           static_cast<unsigned long long>(p.step), static_cast<unsigned long long>(p.steps),
           p.loss, std::fabs(p.gradient_norm), p.learning_rate);
  if (p.what == core::decision::skip) text += "  skipped";
  if (p.tokens_per_s > 0) text += "  " + short_number(p.tokens_per_s) + " tok/s";
  if (!p.layout.empty()) text += "  " + p.layout;
  if (p.left_s >= 0) text += "  " + short_duration(p.left_s) + " left";
  return text;
}

std::string short_layout(const core::layout& shape) {
  std::size_t nodes = 0;
  std::string depths;
  for (const auto& replica : shape.replicas) {
    nodes += replica.stages.size();
    depths += (depths.empty() ? "" : "+") + std::to_string(replica.stages.size());
  }
  if (nodes == 1) return "1 node";
  return std::to_string(nodes) + " nodes: " + depths;
}

std::string text_of(const morph_record& morph) {
  auto text = morph.reason;
  text += format("; %u -> %u nodes, ", morph.nodes_before, morph.nodes_after) + morph.layout;
  text += format(", on from step %llu", static_cast<unsigned long long>(morph.step));
  if (morph.moved_bytes != 0)
    text += ", moved " + short_number(static_cast<double>(morph.moved_bytes)) + "B";
  if (morph.cause == "start") return text;
  text += "; paused " + short_duration(morph.pause_s);
  std::string parts;
  for (const auto& [name, seconds] : morph.parts_s)
    parts += (parts.empty() ? "" : ", ") + name + format(" %.3f", seconds);
  if (!parts.empty()) text += " (" + parts + ")";
  return text;
}

std::string text_of(const core::not_finite& where, std::uint64_t step, core::decision what) {
  auto text =
    format("step %llu: the loss or a gradient is not finite, first in micro-batch %u, block %u; ",
           static_cast<unsigned long long>(step), where.micro_batch, where.block);
  return text + (what == core::decision::skip ? "the step is skipped"
                                              : "the job stops (training.on_not_finite)");
}

void pace::add(std::uint64_t step, double time_s) {
  constexpr double window_s = 60;
  constexpr std::size_t points_max = 512;
  if (!points_.empty() && (step <= points_.back().step || time_s < points_.back().time_s))
    points_.clear();
  points_.push_back({step, time_s});
  std::size_t old = 0;
  while (points_.size() - old > 2 &&
         (time_s - points_[old].time_s > window_s || points_.size() - old > points_max))
    ++old;
  points_.erase(points_.begin(), points_.begin() + static_cast<std::ptrdiff_t>(old));
}

double pace::steps_per_s() const {
  if (points_.size() < 2) return 0;
  auto seconds = points_.back().time_s - points_.front().time_s;
  if (seconds <= 0) return 0;
  return static_cast<double>(points_.back().step - points_.front().step) / seconds;
}

double pace::left_s(std::uint64_t steps) const {
  auto speed = steps_per_s();
  if (speed <= 0) return -1;
  auto done = points_.back().step;
  return done >= steps ? 0 : static_cast<double>(steps - done) / speed;
}

}  // namespace shoal::telemetry
