#include "core/pipeline/timeline.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "core/schedule/text.hpp"

namespace shoal::core {

namespace {

char letter_of(const record& r) {
  if (r.kind == record_kind::reduce) return 'r';
  if (r.kind == record_kind::optimize) return 'o';
  return to_string(r.what.what)[0];
}

const char* color_of(char letter) {
  switch (letter) {
    case 'F':
      return "#6baed6";
    case 'B':
      return "#fd8d3c";
    case 'I':
      return "#fdae6b";
    case 'W':
      return "#74c476";
    case 'R':
      return "#9e9ac8";
    case 'r':
      return "#bdbdbd";
    default:
      return "#636363";
  }
}

template <class... Arguments>
std::string format(const char* how, Arguments... arguments) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), how, arguments...);
  return text.data();
}

/// Where the line of a rank begins among those of all replicas.
std::vector<std::size_t> first_lines(const simulation& step) {
  std::vector<std::size_t> first{0};
  for (auto& ranks : step.replicas) first.push_back(first.back() + ranks.size());
  return first;
}

}  // namespace

std::string picture_of(const simulation& step, std::size_t columns) {
  auto first = first_lines(step);
  columns = std::max<std::size_t>(columns, 1);
  auto width =
    std::max<std::int64_t>(1, (step.makespan_ns + static_cast<std::int64_t>(columns) - 1) /
                                static_cast<std::int64_t>(columns));
  constexpr std::string_view letters = "FBIWRro";
  // Nanoseconds of each letter in each column of each line.
  std::vector<std::array<std::int64_t, letters.size()>> share(first.back() * columns);
  for (auto& r : step.records) {
    if (r.kind == record_kind::transfer) continue;
    auto letter = letters.find(letter_of(r));
    if (letter == std::string_view::npos) continue;
    auto line = first[r.replica] + r.rank;
    for (auto t = r.begin_ns; t < r.end_ns;) {
      auto column = t / width, next = std::min(r.end_ns, (column + 1) * width);
      share[line * columns + static_cast<std::size_t>(column)][letter] += next - t;
      t = next;
    }
  }
  std::string text;
  for (std::size_t line = 0; line < first.back(); ++line) {
    auto replica =
      static_cast<std::size_t>(std::ranges::upper_bound(first, line) - first.begin()) - 1;
    text += step.replicas.size() > 1 ? format("%zu.%-3zu ", replica, line - first[replica])
                                     : format("%-3zu ", line);
    std::string row;
    for (std::size_t c = 0; c < columns; ++c) {
      auto& here = share[line * columns + c];
      auto most = std::ranges::max_element(here);
      row += *most > 0 ? letters[static_cast<std::size_t>(most - here.begin())] : '.';
    }
    text += row + "\n";
  }
  return text;
}

std::string svg_of(const simulation& step) {
  constexpr double wide = 1200, row = 22, left = 50;
  auto first = first_lines(step);
  auto scale = wide / static_cast<double>(std::max<std::int64_t>(step.makespan_ns, 1));
  auto text = format(
    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
    "font-family=\"sans-serif\" font-size=\"10\">\n",
    wide + left + 10, row * static_cast<double>(first.back()) + 30);
  for (std::size_t replica = 0; replica + 1 < first.size(); ++replica)
    for (auto line = first[replica]; line < first[replica + 1]; ++line)
      text += format("<text x=\"2\" y=\"%.0f\">%zu.%zu</text>\n",
                     row * static_cast<double>(line) + 15, replica, line - first[replica]);
  for (auto& r : step.records) {
    if (r.kind == record_kind::transfer || r.end_ns == r.begin_ns) continue;
    auto letter = letter_of(r);
    auto x = left + static_cast<double>(r.begin_ns) * scale;
    auto length = static_cast<double>(r.end_ns - r.begin_ns) * scale;
    auto y = row * static_cast<double>(first[r.replica] + r.rank);
    text += format(
      "<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"18\" fill=\"%s\" stroke=\"white\" "
      "stroke-width=\"0.5\"><title>%s %.6f ms</title></rect>\n",
      x, y + 1, length, color_of(letter), text_of(r.what).c_str(),
      static_cast<double>(r.end_ns - r.begin_ns) / 1e6);
    if (length > 14 && r.kind == record_kind::compute)
      text += format("<text x=\"%.2f\" y=\"%.0f\">%c%u</text>\n", x + 2, y + 14, letter,
                     r.what.micro_batch);
  }
  text += format("<text x=\"%.0f\" y=\"%.0f\">%.3f ms</text>\n", left,
                 row * static_cast<double>(first.back()) + 18,
                 static_cast<double>(step.makespan_ns) / 1e6);
  return text + "</svg>\n";
}

std::string trace_of(const simulation& step) {
  std::string text = "[";
  for (auto& r : step.records) {
    bool sends = r.kind == record_kind::transfer;
    // Threads of what a rank sends stand behind those that compute.
    auto thread = r.rank * 2 + (sends ? 1 : 0);
    auto name = sends ? "send " + text_of(r.what) : text_of(r.what);
    text += format(
      "%s\n{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%lld.%03lld,\"dur\":%lld.%"
      "03lld}",
      text.size() > 1 ? "," : "", name.c_str(), r.replica, thread,
      static_cast<long long>(r.begin_ns / 1000), static_cast<long long>(r.begin_ns % 1000),
      static_cast<long long>((r.end_ns - r.begin_ns) / 1000),
      static_cast<long long>((r.end_ns - r.begin_ns) % 1000));
  }
  return text + "\n]\n";
}

}  // namespace shoal::core
