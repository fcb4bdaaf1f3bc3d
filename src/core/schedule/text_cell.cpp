// One cell, to and from text.
#include <array>
#include <charconv>

#include "base/nearest.hpp"
#include "core/schedule/text.hpp"

namespace shoal::core {

namespace {

constexpr std::array<std::string_view, operation_count> names{
  "F",      "B",           "I",   "W",    "R",   "SEND_F", "RECV_F",   "SEND_B",
  "RECV_B", "REDUCE_GRAD", "TIE", "NORM", "OPT", "DROP",   "MORPH_OK",
};
constexpr std::string_view overlap = "OVERLAP_F_B";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// The digits that `text` begins with, taken off it.
std::string_view take_digits(std::string_view& text) {
  std::size_t n = 0;
  while (n < text.size() && is_digit(text[n])) ++n;
  auto digits = text.substr(0, n);
  text.remove_prefix(n);
  return digits;
}

/// Text from outside may be long and may hold any bytes; an error shows its beginning.
std::string shown(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, 40)) out += c >= ' ' && c <= '~' ? c : '?';
  return "\"" + out + (text.size() > 40 ? "...\"" : "\"");
}

error wrong(std::string_view text, const std::string& what) {
  return {errc::config, shown(text) + ": " + what + "."};
}

result<std::uint32_t> number(std::string_view cell, const char* what, std::string_view digits,
                             std::uint32_t limit) {
  if (digits.empty()) return wrong(cell, std::string("it needs a ") + what + ", as in \"2F0\"");
  std::uint32_t value = 0;
  auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failure != std::errc() || value >= limit)
    return wrong(cell, std::string("its ") + what + " is too large; the largest is " +
                         std::to_string(limit - 1));
  return value;
}

result<operation> operation_of(std::string_view cell, std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<operation>(i);
  std::vector<std::string> all(names.begin(), names.end());
  return wrong(cell, "there is no operation " + shown(name.substr(0, 64)) + "; the nearest is \"" +
                       nearest_name(name.substr(0, 64), all) + "\"");
}

result<cell> parse_one(std::string_view text) {
  auto rest = text;
  cell c;
  TRY(c.stage, number(text, "stage", take_digits(rest), plan_stages_max));
  std::size_t n = 0;
  while (n < rest.size() && (rest[n] == '_' || (rest[n] >= 'A' && rest[n] <= 'Z'))) ++n;
  if (n == 0) n = rest.find_first_of("0123456789@");  // not upper-case letters: named by the error
  auto name = rest.substr(0, n);
  TRY(c.what, operation_of(text, name));
  rest.remove_prefix(name.size());
  auto digits = take_digits(rest);
  if (has_micro_batch(c.what) || !digits.empty()) {
    TRY(c.micro_batch, number(text, "micro-batch", digits, plan_micro_batches_max));
  }
  if (!digits.empty() && !has_micro_batch(c.what) && c.what != operation::optimize)
    return wrong(text, std::string(to_string(c.what)) + " takes no micro-batch; write \"" +
                         std::to_string(c.stage) + std::string(to_string(c.what)) + "\"");
  if (!rest.empty() && rest[0] == '@') {
    rest.remove_prefix(1);
    TRY(c.version, number(text, "version", take_digits(rest), none));
  }
  if (!rest.empty())
    return wrong(text, "it goes on after \"" + text_of(c) + "\"; a cell ends there");
  return c;
}

}  // namespace

std::string_view to_string(operation what) { return names[static_cast<std::size_t>(what)]; }

std::string text_of(const cell& c) {
  auto text = std::to_string(c.stage);
  text += static_cast<std::size_t>(c.what) < names.size() ? to_string(c.what) : "?";
  if (c.micro_batch != none) text += std::to_string(c.micro_batch);
  if (c.version != none) text += "@" + std::to_string(c.version);
  return text;
}

std::string text_of(const std::vector<cell>& order) {
  std::string text;
  for (std::size_t i = 0; i < order.size();) {
    auto end = end_of_group(order, i);
    if (i > 0) text += ' ';
    if (order[i].group == none) {
      text += text_of(order[i]);
    } else {
      for (auto k = i; k < end; ++k) text += (k == i ? "(" : ";") + text_of(order[k]);
      text += std::string(")") + std::string(overlap);
    }
    i = end;
  }
  return text;
}

result<std::vector<cell>> parse_cells(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) return wrong(text, "a cell is expected, as in \"2F0\"");
  if (text[0] != '(') {
    TRY(auto c, parse_one(text));
    return std::vector<cell>{c};
  }
  auto semicolon = text.find(';'), close = text.find(')');
  if (close == std::string_view::npos || semicolon == std::string_view::npos || semicolon > close ||
      text.substr(close + 1) != overlap)
    return wrong(text, "a pair that overlaps is written as in \"(0F3;7B1)OVERLAP_F_B\"");
  TRY(auto first, parse_one(text.substr(1, semicolon - 1)));
  TRY(auto second, parse_one(text.substr(semicolon + 1, close - semicolon - 1)));
  for (auto* c : {&first, &second}) {
    if (!is_compute(c->what))
      return wrong(text, "only F, B, I, W and R overlap, not " + std::string(to_string(c->what)));
    c->group = 0;
  }
  return std::vector<cell>{first, second};
}

}  // namespace shoal::core
